// A lesson's figure, drawn by Plotly in the page's colours. Plotly is large: it is loaded for the first figure only.

import {loadScript} from "../hosts/scripts.js";

/** @import {CourseFigure} from "./data.js" */

const LIBRARY = "plotly.min.js";
const LOOK = {displaylogo: false, displayModeBar: false, responsive: true};
/** @type {Promise<void> | undefined} */
let library;

/** @returns {Promise<any>} */
async function plotly() {
  library ??= loadScript(LIBRARY);
  await library;
  return Reflect.get(globalThis, "Plotly");
}

/** Whether the page is dark. */
export function isDark() {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Draw a figure in a place; `press` gets the option of a place in it that is pressed.
 * @param {HTMLElement} place @param {CourseFigure} figure @param {(option: string) => void} press */
export async function drawFigure(place, figure, press) {
  place.setAttribute("aria-label", figure.alt);
  place.dataset["wanted"] = figure.alt;
  const drawer = await plotly();
  // While it was loaded, another setting may have been chosen.
  if (place.dataset["wanted"] !== figure.alt || !place.isConnected) return;
  const {data, layout} = structuredClone(isDark() ? figure.dark : figure.light);
  const pressed = figure.spots.length ? {hovermode: "closest", clickmode: "event", dragmode: false} : {};
  await drawer.react(place, data, {...layout, ...pressed, autosize: true}, LOOK);
  const drawn = /** @type {any} */ (place);
  drawn.removeAllListeners?.("plotly_click");
  drawn.on?.("plotly_click", (/** @type {{points: {customdata?: unknown[]}[]}} */ {points}) => {
    for (const {customdata} of points) {
      const option = Array.isArray(customdata) ? figure.spots[Number(customdata[0])] : undefined;
      if (option !== undefined && customdata?.length === 2) press(option);
    }
  });
}

/** Let a figure go. @param {HTMLElement} place */
export function clearFigure(place) {
  place.dataset["wanted"] = "";
  Reflect.get(globalThis, "Plotly")?.purge(place);
  place.removeAttribute("aria-label");
}
