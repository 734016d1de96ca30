// What the mask did beyond the matrix: each token's output, the other heads, and what comes next.

import {layerNumber, layerPlace} from "../heads/numbers.js";
import {lengths, percent, roundEnd} from "./board.js";
import {inkOn, onRamp, rgb, threeDigits} from "../data/scale.js";
import {gridRows, placeCells} from "../heads/cells.js";
import {layHeads} from "../heads/layout.js";
import {element} from "../parts/element.js";

/**
 * @import {Colour} from "../data/scale.js"
 * @import {Ground, Run} from "./board.js"
 */

/** @typedef {{layer: number, head: number}} Head */

// Of more tokens, so many have a bar of their own, and the others one together.
const MOST_BARS = {all: 14, named: 12};
const ROOM_FOR_NUMBER = {width: 26, height: 15};
const LEAST_WRITTEN = 0.005;
const MOST_WORDS = 6;
const GRID = {height: 222, phone: 300};

/**
 * How far each token's output moved, as bars.
 * @param {HTMLElement} place
 * @param {Pick<Run, "outputs" | "said">} run
 * @param {number} room  in pixels
 */
export function writeOutputs(place, {outputs, said}, room) {
  const end = roundEnd(Math.max(...outputs));
  const most = Math.max(...outputs);
  const all = outputs.length <= MOST_BARS.all;
  const order = outputs.map((_, at) => at).sort((one, other) => outputs[other] - outputs[one]);
  const named = all ? outputs.map((_, at) => at) : order.slice(0, MOST_BARS.named).sort((one, other) => one - other);
  const rows = named.map((at) => {
    const row = bar(said[at], outputs[at], end, most > 0 && outputs[at] === most);
    row.dataset["output"] = String(at);
    return row;
  });
  if (!all) {
    const others = order.slice(MOST_BARS.named);
    const mean = others.reduce((sum, at) => sum + outputs[at], 0) / others.length;
    const row = bar(`${others.length} others`, mean, end, false);
    row.classList.add("av-others");
    row.title = "the mean of all others";
    rows.push(row);
  }
  const pitch = Math.max(15, Math.min(28, Math.floor(room / rows.length)));
  place.style.setProperty("--av-pitch", `${pitch}px`);
  place.replaceChildren(...rows);
}

/**
 * @param {string} name
 * @param {number} share
 * @param {number} end
 * @param {boolean} most
 */
function bar(name, share, end, most) {
  const fill = element("span", {class: "av-fill"});
  fill.style.width = `${(end > 0 ? share / end : 0) * 100}%`;
  const track = element("span", {class: "av-track", "aria-hidden": "true"}, fill);
  const number = element("span", {class: "av-amount"}, lengths(share));
  return element("li", most ? {class: "av-most"} : {}, element("bdi", {}, name), track, number);
}

/**
 * A cell for each head.
 * @param {HTMLElement} table
 * @param {Ground} ground
 * @returns {Map<string, HTMLElement>}
 */
export function buildHeads(table, {header: {layers}}) {
  /** @type {Map<string, HTMLElement>} */
  const cells = new Map();
  const build = (/** @type {number} */ at, /** @type {number} */ head) => {
    const layer = layerNumber(layers, at);
    const place = {"data-layer": layer, "data-head": head};
    const node = element("div", {class: "av-cell", role: "gridcell", tabindex: -1, ...place}, element("span"));
    cells.set(`${layer} ${head}`, node);
    return node;
  };
  table.replaceChildren(...gridRows(layers, build));
  return cells;
}

/**
 * Colour the heads by how much of their weight moved, and mark the one that is shown.
 * @param {HTMLElement} table
 * @param {Map<string, HTMLElement>} cells
 * @param {Ground} ground
 * @param {{heads: (number | null)[][] | null, shown: Head, ramp: Colour[]}} told
 */
export function drawHeads(table, cells, {header: {layers}}, {heads, shown, ramp}) {
  const width = table.parentElement?.clientWidth ?? 0;
  const layout = layHeads(layers, {width, height: width < 500 ? GRID.phone : GRID.height, tallest: 1});
  placeCells(table, layout);
  const end = roundEnd(Math.max(0, ...(heads ?? []).flat().map((one) => one ?? 0)));
  const writes = layout.width >= ROOM_FOR_NUMBER.width && layout.height >= ROOM_FOR_NUMBER.height;
  const reached = [...cells.values()].find((cell) => cell.matches(":focus"));
  for (const [name, cell] of cells) {
    const [layer, head] = name.split(" ").map(Number);
    const moved = heads?.[layerPlace(layers, layer)]?.[head] ?? 0;
    const colour = onRamp(ramp, end > 0 ? moved / end : 0);
    const chosen = layer === shown.layer && head === shown.head;
    cell.style.background = rgb(colour);
    cell.style.color = inkOn(colour);
    cell.setAttribute("aria-selected", String(chosen));
    cell.setAttribute("aria-label", `Layer ${layer} head ${head}: ${percent(moved)} of its weight moved`);
    cell.title = `layer ${layer} head ${head}: ${percent(moved)} of its weight moved`;
    cell.tabIndex = (reached ? cell === reached : chosen) ? 0 : -1;
    const number = /** @type {HTMLElement} */ (cell.firstElementChild);
    number.textContent = writes && heads && moved >= LEAST_WRITTEN ? String(Math.round(moved * 100)) : "";
  }
  return layout;
}

/**
 * What comes next, before and after; of a model that predicts nothing, how far the whole sentence turned.
 * @param {HTMLElement} place
 * @param {Run} run
 */
export function writeWhole(place, {likelier, cosine}) {
  if (likelier.length) {
    const larger = (/** @type {Run["likelier"][number]} */ [, before, after]) => Math.max(before, after);
    const likeliest = [...likelier].sort((one, other) => larger(other) - larger(one)).slice(0, MOST_WORDS);
    const most = Math.max(...likeliest.map(larger), 0.001);
    place.replaceChildren(
      ...likeliest.map(([token, before, after]) => {
        const [old, now] = [element("span", {class: "av-old"}), element("span", {class: "av-now"})];
        old.style.width = `${(before / most) * 100}%`;
        now.style.width = `${(after / most) * 100}%`;
        const track = element("span", {class: "av-pair", "aria-hidden": "true"}, old, now);
        const numbers = element("span", {class: "av-amount"}, `${threeDigits(before)} \u2192 ${threeDigits(after)}`);
        return element("li", {}, element("bdi", {}, token), track, numbers);
      }),
    );
    return;
  }
  const fill = element("span", {class: "av-fill"});
  fill.style.width = `${Math.max(0, cosine ?? 0) * 100}%`;
  const track = element("span", {class: "av-track", "aria-hidden": "true"}, fill);
  const number = element("span", {class: "av-amount"}, cosine === null ? "none" : cosine.toFixed(3));
  place.replaceChildren(element("li", {class: "av-most"}, element("span", {}, "cosine"), track, number));
}
