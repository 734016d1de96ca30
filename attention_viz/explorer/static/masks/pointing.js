// Pointing at what stands beside the matrix: bars and heads.

import {layerNumber, layerPlace} from "../heads/numbers.js";
import {isAtHand} from "./board.js";
import {headByKey} from "../heads/cells.js";
import {listener, within} from "../parts/element.js";

/** @import {Head} from "./sides.js"
 * @import {Stage} from "./stage.js" */

/** What is done when a stroke has ended, a head was pressed, a head or a cell is pointed at.
 * @typedef {{painted: () => void, kept: (place: Head) => void, draw: () => void, pointed: () => void}} Hear */

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

/** Pointing at a head puts it into the matrix, pressing it keeps it. @param {Stage} stage @param {Hear} hear */
export function listenToHeads(stage, hear) {
  const on = listener(stage.parts.table, stage.signal);
  const headOf = (/** @type {Event} */ event) => {
    const node = within(event, "[data-head]");
    return node ? {layer: Number(node.dataset["layer"]), head: Number(node.dataset["head"])} : null;
  };
  const peek = (/** @type {Head | null} */ head) => {
    const {ground} = stage;
    if (!ground || (head && !isAtHand(ground, head))) return;
    const mine = head && head.layer === ground.header.layer && head.head === ground.header.head;
    stage.peek = mine ? null : head;
    hear.draw();
  };
  on("pointerover", (event) => event.pointerType !== "touch" && peek(headOf(event)));
  on("pointerleave", () => peek(null));
  on("click", (event) => {
    const head = headOf(event);
    if (head) hear.kept(head);
  });
  on("focusin", (event) => peek(headOf(event)));
  on("focusout", () => peek(null));
  on("keydown", (event) => {
    const head = headOf(event);
    if (!head || !stage.ground) return;
    if (event.key === "Enter" || event.key === " ") hear.kept(head);
    else {
      const {layers} = stage.ground.header;
      const from = {layer: layerPlace(layers, head.layer), head: head.head};
      const to = headByKey(layers, from, event.key, stage.layout?.turned);
      if (!to) return;
      stage.cells.get(`${layerNumber(layers, to.layer)} ${to.head}`)?.focus();
    }
    event.preventDefault();
  });
}
