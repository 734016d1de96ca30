// Plotly draws a picture as wide as the screen has room for; on paper it is made as narrow as the page.

import {attend} from "./attending.js";

/** @import {Attending} from "./attending.js" */

// Pixels across a page of A4 without its margins and the page's own; a pixel of paper is 1/96 of an inch.
const WIDE = 630;

/** Beside the reader's eyes, see to paper. @param {{data: Attending & {language: string}}} mounting @returns {() => void} what takes it away */
export default function followLesson({data}) {
  attend(data);
  for (const part of document.querySelectorAll(".st-key-learn-body, .st-key-learn-lesson")) {
    part.setAttribute("lang", data.language);
  }
  const paper = matchMedia("print");
  const fit = () => fitAll(paper.matches);
  const begin = () => fitAll(true);
  const end = () => fitAll(false);
  paper.addEventListener("change", fit);
  addEventListener("beforeprint", begin);
  addEventListener("afterprint", end);
  return () => {
    paper.removeEventListener("change", fit);
    removeEventListener("beforeprint", begin);
    removeEventListener("afterprint", end);
  };
}

/** @param {boolean} printed */
function fitAll(printed) {
  for (const picture of document.querySelectorAll(".js-plotly-plot")) {
    if (!(picture instanceof HTMLElement)) continue;
    picture.style.zoom = "";
    const {width} = picture.getBoundingClientRect();
    const own = Math.max(width, picture.querySelector("svg")?.width.baseVal.value ?? 0);
    if (printed && own > WIDE) picture.style.zoom = String(WIDE / own);
  }
}
