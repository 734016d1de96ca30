// Painting and pointing: with the pointer, and from the keyboard.

import {matricesOf} from "./board.js";
import {listenToBars, markRow} from "./pointing.js";
import {BATCHED, opens, paint} from "./rules.js";
import {PAINT_HINT} from "./stage.js";
import {cellAt} from "./sheet.js";
import {significant} from "../data/mixing.js";
import {weightText} from "../data/scale.js";
import {arrowStep, element, listener, within} from "../parts/element.js";

/** @import {Brush} from "./rules.js"
 * @import {Hear} from "./pointing.js"
 * @import {Cell} from "./sheet.js"
 * @import {Stage} from "./stage.js" */

/** Hear what happens to the matrix and the bars. @param {Stage} stage @param {Hear} hear */
export function listenTo(stage, hear) {
  listenToSheet(stage, hear);
  listenToKeys(stage, hear);
  listenToBars(stage, hear);
}

/** Why nothing can be painted now; empty where it can. @param {Stage} stage */
function unpaintable({message, choice, peek}) {
  if (!message || message.locked) return message?.locked ?? "Still loading.";
  if (peek) return "Click the head to choose it, then paint.";
  return BATCHED.includes(choice.mask) ? "This mask is for two sentences. Choose another mask to paint." : "";
}

/** @param {Stage} stage @param {Hear} hear */
function listenToSheet(stage, hear) {
  const {canvas, node} = stage.sheet;
  const on = listener(canvas, stage.signal);
  /** @type {{open: boolean, at: Cell} | null} */
  let stroke = null;
  on("pointerdown", (event) => {
    const at = cellAt(stage.sheet, event);
    if (!at || event.button !== 0 || refuse(stage)) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    stroke = {at, open: touch(stage, at, stage.brush, null)};
    stage.painting = true;
    hear.pointed();
  });
  on("pointermove", (event) => {
    const at = cellAt(stage.sheet, event);
    const same = at?.query === stage.over?.query && at?.key === stage.over?.key;
    if (stroke && at && (at.query !== stroke.at.query || at.key !== stroke.at.key)) {
      for (const cell of between(stroke.at, at)) touch(stage, cell, stage.brush, stroke.open);
      stroke.at = at;
    }
    point(stage, at, event);
    if (!same) hear.pointed();
  });
  const end = () => {
    if (!stroke) return;
    stage.painted = stroke.at;
    stroke = null;
    stage.painting = false;
    hear.painted();
  };
  on("pointerup", end);
  on("pointercancel", end);
  on("pointerleave", () => stroke ?? (point(stage, null), hear.pointed()));
  listener(node, stage.signal)("click", (event) => {
    const label = within(event, "button");
    if (!label || refuse(stage)) return;
    const [row, column] = [label.dataset["row"], label.dataset["column"]];
    touch(stage, {query: Number(row ?? 0), key: Number(column ?? 0)}, row === undefined ? "column" : "row", null);
    hear.painted();
  });
}

/** Say why nothing can be painted, if so. @param {Stage} stage */
function refuse(stage) {
  const why = unpaintable(stage);
  if (why) stage.parts.live.textContent = why;
  stage.parts.hint.textContent = why || PAINT_HINT;
  return why !== "";
}

/** Touch a cell with a brush: what a stroke does is decided where it begins.
 * @param {Stage} stage @param {Cell} at @param {Brush} brush @param {boolean | null} open */
function touch(stage, at, brush, open) {
  const {ground, added, size} = stage;
  if (!ground) return false;
  const does = open ?? opens(added, ground.own, ground.columns, {...at, brush});
  paint(added, ground.own, ground.columns, {...at, brush, size: brush === stage.brush ? size : 1, open: does});
  // What ran, ran with another mask.
  stage.run = null;
  stage.choice = {...stage.choice, mask: "drawn"};
  return does;
}

/** The cells on the way from one to another. @param {Cell} from @param {Cell} to @returns {Cell[]} */
function between(from, to) {
  const steps = Math.max(Math.abs(to.query - from.query), Math.abs(to.key - from.key), 1);
  return Array.from({length: steps}, (_, at) => ({
    query: Math.round(from.query + ((to.query - from.query) * (at + 1)) / steps),
    key: Math.round(from.key + ((to.key - from.key) * (at + 1)) / steps),
  }));
}

/** Tell of the cell under the pointer, and mark its row here and its bar.
 * @param {Stage} stage @param {Cell | null} at @param {PointerEvent} [event] */
function point(stage, at, event) {
  if (at?.query !== stage.painted?.query || at?.key !== stage.painted?.key) stage.painted = null;
  stage.over = at;
  markRow(stage, at?.query ?? null);
  if (at && event) stage.tooltip.show(event.clientX, event.clientY, ...wordsOf(stage, at));
  else stage.tooltip.hide();
}

/** A cell in words: its tokens, its weight before and after, and whether it is blocked.
 * @param {Stage} stage @param {Cell} at */
function wordsOf(stage, {query, key}) {
  const {ground} = stage;
  if (!ground) return [];
  const {before, after, own, open} = matricesOf(ground, stage);
  const cell = query * ground.columns + key;
  const {queries, keys} = ground.header;
  const blocked = own[cell] ? (open[cell] ? "" : ", blocked") : ", blocked by the model";
  const written = ground.header.mixed ? significant : weightText;
  const then = after ? ` \u2192 ${written(after[cell])}` : " \u2192 \u2026";
  return [
    element(
      "span",
      {},
      element("bdi", {class: "av-query"}, queries.tokens[query]),
      " \u2192 ",
      element("bdi", {class: "av-keys"}, keys.tokens[key]),
      `: ${written(before[cell])}${then}${blocked}`,
    ),
  ];
}

/** @param {Stage} stage @param {Hear} hear */
function listenToKeys(stage, hear) {
  const {application, live} = stage.parts;
  const on = listener(application, stage.signal);
  const tell = () => {
    const words = stage.cursor ? wordsOf(stage, stage.cursor) : [];
    live.textContent = words.map((one) => one.textContent).join("");
  };
  const move = (/** @type {KeyboardEvent} */ event) => {
    const {ground} = stage;
    if (!ground) return;
    const way = arrowStep(event.key);
    const chosen = stage.message?.query == null ? null : stage.pair;
    const from = stage.cursor ?? chosen ?? {query: 0, key: 0};
    if (way) {
      const within_ = (/** @type {number} */ place, /** @type {number} */ count) =>
        Math.max(0, Math.min(count - 1, place));
      const [down, across] = stage.cursor ? way : [0, 0];
      stage.cursor = {query: within_(from.query + down, ground.rows), key: within_(from.key + across, ground.columns)};
    } else if ((event.key === " " || event.key === "Enter") && event.target === application) {
      if (!refuse(stage)) {
        stage.cursor = from;
        touch(stage, from, stage.brush, null);
        hear.painted();
      }
    } else return;
    event.preventDefault();
    markRow(stage, stage.cursor?.query ?? null);
    hear.pointed();
    tell();
  };
  on("keydown", move);
  on("focusout", () => {
    stage.cursor = null;
    hear.pointed();
  });
}
