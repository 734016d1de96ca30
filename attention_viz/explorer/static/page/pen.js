// A pen for a matrix that Plotly drew: a click touches a cell, a drag several, and so do arrow keys with Space.
//
// Streamlit itself tells of clicks on a chart or of drags, never of both at once. What was touched goes to the server as
// numbered strokes, all that it hasn't seen yet at a time: quick ones would otherwise replace each other on their way.

import {arrowStep} from "../parts/element.js";

/** @typedef {[row: number, column: number]} CellPlace */

/** What the page hands over: which chart is drawn on, the labels of its rows and columns, the number of the last stroke
 * that it has heard of, what a stroke does, and the colour of the frame.
 * @typedef {{chart: string, labels: string[], seen: number, does: string, colour: string}} PenData */

/** The pen of one chart, kept while the page is drawn anew.
 * @typedef {object} Pen
 * @property {PenData} data
 * @property {(name: string, value: unknown) => void} setStateValue
 * @property {HTMLElement} root  what has the focus, by keyboard
 * @property {HTMLElement} output
 * @property {number[][]} strokes  not heard of yet: number, count of labels, top, bottom, left, right
 * @property {number} serial
 * @property {CellPlace | null} from
 * @property {CellPlace | null} to
 * @property {number | null} pointer
 * @property {AbortController | null} listening
 * @property {HTMLElement | null} frame
 * @property {DOMRect | null} within  where the cells are in the chart */

/** @type {Map<string, Pen>} */
const pens = new Map();

/** @param {{data: PenData, parentElement: HTMLElement, setStateValue: Pen["setStateValue"]}} mounting */
export default function penComponent({data, parentElement, setStateValue}) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(".pen"));
  const output = /** @type {HTMLElement} */ (root.querySelector("output"));
  const listening = new AbortController();
  const pen = pens.get(data.chart) ?? makePen(data, root, output, setStateValue);
  pens.set(data.chart, pen);
  pen.listening?.abort();
  Object.assign(pen, {data, setStateValue, root, output, listening});
  pen.serial = Math.max(pen.serial, data.seen);
  pen.strokes = pen.strokes.filter(([serial]) => serial > data.seen);
  if (pen.to?.some((place) => place >= data.labels.length)) pen.from = pen.to = null;
  listen(pen, listening);
  explain(pen);
  if (pen.pointer === null && !isFocused(pen)) clear(pen);
  return () => {
    listening.abort();
    // A drag goes on while the page is drawn anew beneath it.
    if (pen.listening === listening && pen.pointer === null) clear(pen);
  };
}

/** @param {PenData} data @param {HTMLElement} root @param {HTMLElement} output
 * @param {Pen["setStateValue"]} setStateValue @returns {Pen} */
function makePen(data, root, output, setStateValue) {
  return {
    ...{data, root, output, setStateValue, strokes: [], serial: 0, from: null, to: null},
    ...{pointer: null, listening: null, frame: null, within: null},
  };
}

/** @param {Pen} pen */
function explain({root, data: {does}}) {
  const words = /** @type {HTMLElement} */ (root.querySelector("span"));
  words.textContent = `Click a cell or drag over several. Keyboard: focus this line; arrows move, Shift selects several, Space ${does}.`;
  root.setAttribute("aria-label", `Draw by keyboard: arrow keys move, Shift selects several cells, Space ${does} them`);
}

/** @param {Pen} pen @param {AbortController} listening */
function listen(pen, {signal}) {
  document.addEventListener("pointerdown", (event) => press(pen, event), {signal, capture: true});
  document.addEventListener("pointermove", (event) => move(pen, event), {signal, capture: true});
  document.addEventListener("pointerup", (event) => lift(pen, event), {signal, capture: true});
  document.addEventListener("pointercancel", () => drop(pen), {signal, capture: true});
  pen.root.addEventListener("keydown", (event) => key(pen, event), {signal});
  pen.root.addEventListener("blur", () => clear(pen), {signal});
}

/** @param {Pen} pen @param {PointerEvent} event */
function press(pen, event) {
  if (event.button !== 0 || !isOver(pen, event)) return;
  pen.pointer = event.pointerId;
  pen.from = pen.to = cellAt(pen, event);
  show(pen);
}

/** @param {Pen} pen @param {PointerEvent} event */
function move(pen, event) {
  if (event.pointerId !== pen.pointer) return;
  pen.to = cellAt(pen, event);
  show(pen);
}

/** @param {Pen} pen @param {PointerEvent} event */
function lift(pen, event) {
  if (event.pointerId !== pen.pointer) return;
  pen.pointer = null;
  pen.to = cellAt(pen, event);
  show(pen);
  stroke(pen);
}

/** @param {Pen} pen */
function drop(pen) {
  pen.pointer = null;
  clear(pen);
}

/** @param {Pen} pen @param {KeyboardEvent} event */
function key(pen, event) {
  const to = arrowStep(event.key);
  if (event.key === "Escape" && (pen.pointer !== null || pen.to)) {
    drop(pen);
  } else if (event.key === " " || event.key === "Enter") {
    if (pen.to) stroke(pen);
    else pen.from = pen.to = [0, 0];
  } else if (to) {
    step(pen, to, event.shiftKey);
  } else return;
  event.preventDefault();
  if (pen.to) show(pen);
}

/** @param {Pen} pen @param {[down: number, right: number]} step @param {boolean} extend */
function step(pen, [down, right], extend) {
  const last = pen.data.labels.length - 1;
  const inside = (/** @type {number} */ place) => Math.min(Math.max(place, 0), last);
  pen.to = pen.to ? [inside(pen.to[0] + down), inside(pen.to[1] + right)] : [0, 0];
  if (!extend || !pen.from) pen.from = pen.to;
}

/** Tell the server which cells were touched; whether they are blocked or opened is up to it. @param {Pen} pen */
function stroke(pen) {
  if (!pen.from || !pen.to) return;
  const [top, bottom, left, right] = bounds(pen.from, pen.to);
  pen.serial += 1;
  pen.strokes = [...pen.strokes, [pen.serial, pen.data.labels.length, top, bottom, left, right]];
  pen.setStateValue("strokes", pen.strokes);
}

/** The first and last row and column between two cells. @param {CellPlace} from @param {CellPlace} to */
function bounds(from, to) {
  return [0, 1].flatMap((axis) => [Math.min(from[axis], to[axis]), Math.max(from[axis], to[axis])]);
}

/** Where Plotly hears the pointer: exactly over the cells. Streamlit writes a chart's key into a class around it.
 * @param {Pen} pen */
function areaOf({data}) {
  return document.querySelector(`.st-key-${CSS.escape(data.chart)} .nsewdrag`);
}

/** Where the cells are on the screen; while they are drawn anew, and nothing hears the pointer, where they were.
 * @param {Pen} pen */
function boxOf(pen) {
  const chart = document.querySelector(`.st-key-${CSS.escape(pen.data.chart)}`)?.getBoundingClientRect();
  const cells = areaOf(pen)?.getBoundingClientRect();
  if (!chart) return null;
  if (cells?.height) pen.within = new DOMRect(cells.x - chart.x, cells.y - chart.y, cells.width, cells.height);
  const {within} = pen;
  return within ? new DOMRect(chart.x + within.x, chart.y + within.y, within.width, within.height) : null;
}

/** @param {Pen} pen @param {PointerEvent} event */
function isOver(pen, {target, clientX, clientY}) {
  const area = areaOf(pen);
  if (area?.getBoundingClientRect().height) return target instanceof Node && area.contains(target);
  const box = boxOf(pen);
  return box !== null && clientX >= box.left && clientX < box.right && clientY >= box.top && clientY < box.bottom;
}

/** @param {Pen} pen @param {PointerEvent} event @returns {CellPlace | null} */
function cellAt(pen, {clientX, clientY}) {
  const box = boxOf(pen);
  if (!box) return pen.to;
  const count = pen.data.labels.length;
  const at = (/** @type {number} */ share) => Math.min(Math.max(Math.floor(share * count), 0), count - 1);
  return [at((clientY - box.top) / box.height), at((clientX - box.left) / box.width)];
}

/** Frame the touched cells, and say which they are. @param {Pen} pen */
function show(pen) {
  const area = areaOf(pen);
  const around = area?.closest(".svg-container");
  const box = boxOf(pen);
  if (!around || !box || !pen.from || !pen.to) return;
  const [top, bottom, left, right] = bounds(pen.from, pen.to);
  const outer = around.getBoundingClientRect();
  const [high, wide] = [box.height / pen.data.labels.length, box.width / pen.data.labels.length];
  pen.frame ??= document.createElement("div");
  Object.assign(pen.frame.style, {
    position: "absolute",
    pointerEvents: "none",
    boxSizing: "border-box",
    border: `2.5px solid ${pen.data.colour}`,
    top: `${box.top - outer.top + top * high}px`,
    left: `${box.left - outer.left + left * wide}px`,
    height: `${(bottom - top + 1) * high}px`,
    width: `${(right - left + 1) * wide}px`,
  });
  around.append(pen.frame);
  const {labels} = pen.data;
  const name = (/** @type {number} */ first, /** @type {number} */ last) =>
    first === last ? `“${labels[first]}”` : `“${labels[first]}” to “${labels[last]}”`;
  pen.output.textContent = `${name(top, bottom)} attending to ${name(left, right)}`;
}

/** @param {Pen} pen */
function clear(pen) {
  pen.frame?.remove();
  pen.from = pen.to = null;
  pen.output.textContent = "";
}

/** @param {Pen} pen */
function isFocused({root}) {
  const tree = root.getRootNode();
  return (tree instanceof Document || tree instanceof ShadowRoot) && tree.activeElement === root;
}
