// Plotly draws a figure as wide as the screen has room for; on paper it is made as narrow as the page.

// Pixels across a page of A4 without its margins and the page's own; a pixel of paper is 1/96 of an inch.
const WIDE = 630;

/** Fit all figures to paper, or to the screen again. @param {boolean} printed */
export function fitFigures(printed) {
  for (const figure of document.querySelectorAll(".js-plotly-plot")) {
    if (!(figure instanceof HTMLElement)) continue;
    figure.style.zoom = "";
    const {width} = figure.getBoundingClientRect();
    const own = Math.max(width, figure.querySelector("svg")?.width.baseVal.value ?? 0);
    if (printed && own > WIDE) figure.style.zoom = String(WIDE / own);
  }
}

/** Fit them whenever the page is printed. @returns {() => void} what stops it */
export function fitToPaper() {
  const begin = () => fitFigures(true);
  const end = () => fitFigures(false);
  addEventListener("beforeprint", begin);
  addEventListener("afterprint", end);
  return () => {
    removeEventListener("beforeprint", begin);
    removeEventListener("afterprint", end);
  };
}
