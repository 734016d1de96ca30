// The course's page: it leads the reader's eyes, names its language, and fits figures to paper.

import {attend} from "./attending.js";
import {fitFigures, fitToPaper} from "./fitting.js";

/** @import {Attending} from "./attending.js" */

/** Beside the reader's eyes, see to paper. @param {{data: Attending & {language: string}}} mounting @returns {() => void} what takes it away */
export default function followLesson({data}) {
  attend(data);
  for (const part of document.querySelectorAll(".st-key-learn-body, .st-key-learn-lesson")) {
    part.setAttribute("lang", data.language);
  }
  const paper = matchMedia("print");
  const fit = () => fitFigures(paper.matches);
  paper.addEventListener("change", fit);
  const stop = fitToPaper();
  return () => {
    paper.removeEventListener("change", fit);
    stop();
  };
}
