// Pointing at the bars beside the matrix.

import {listener, within} from "../parts/element.js";

/** @import {Stage} from "./stage.js" */

/** What is done when a stroke has ended, and when something is pointed at.
 * @typedef {{painted: () => void, pointed: () => void}} Hear */

/** Mark a row here and its bar. @param {Stage} stage @param {number | null} row */
export function markRow(stage, row) {
  stage.overRow = row;
  for (const bar of stage.parts.outputs.children)
    bar.classList.toggle(
      "av-marked",
      row !== null && /** @type {HTMLElement} */ (bar).dataset["output"] === String(row),
    );
}

/** Pointing at a bar marks its row. @param {Stage} stage @param {Hear} hear */
export function listenToBars(stage, hear) {
  const on = listener(stage.parts.outputs, stage.signal);
  on("pointerover", (event) => {
    const output = within(event, "[data-output]")?.dataset["output"];
    const {ground} = stage;
    const row = Number(output);
    // Of a model with two texts, what comes out stands beside the other one.
    if (output === undefined || !ground || stage.last?.said[row] !== ground.header.queries.tokens[row]) return;
    markRow(stage, row);
    hear.pointed();
  });
  on("pointerleave", () => {
    markRow(stage, null);
    hear.pointed();
  });
}
