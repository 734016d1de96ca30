// What the mask did beyond the matrix: each token's output, the other heads, and what comes next.

import {layerPlace} from "../heads/numbers.js";
import {lengths, percent, roundEnd} from "./board.js";
import {inkOn, onRamp, rgb, weightText} from "../data/scale.js";
import {element} from "../parts/element.js";
import {nameNode} from "../parts/labels.js";

/** @import {Colour} from "../data/scale.js"
 * @import {HeadCell, HeadGrid, HeadPlace} from "../heads/cells.js"
 * @import {Ground, Run} from "./board.js" */

// Of more tokens, so many have a bar of their own, and the others one together.
const MOST_BARS = {all: 14, named: 12};
const ROOM_FOR_NUMBER = {width: 26, height: 15};
const LEAST_WRITTEN = 0.005;
const MOST_WORDS = 6;
const GRID = {height: 222, most: 400, phone: 300};

/** How far each token's output moved, as bars.
 * @param {HTMLElement} place @param {Pick<Run, "outputs" | "said">} run
 * @param {number} room  in pixels
 * @param {number | null} kept  a token that has a bar in any case */
export function writeOutputs(place, {outputs, said}, room, kept = null) {
  const end = roundEnd(Math.max(...outputs));
  const most = Math.max(...outputs);
  const all = outputs.length <= MOST_BARS.all;
  const order = outputs
    .map((_, at) => at)
    .sort((one, other) => Number(other === kept) - Number(one === kept) || outputs[other] - outputs[one]);
  const names = said;
  const named = all ? outputs.map((_, at) => at) : order.slice(0, MOST_BARS.named).sort((one, other) => one - other);
  const rows = named.map((at) => {
    const row = bar(names[at], outputs[at], end, most > 0 && outputs[at] === most);
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

/** @param {string} name @param {number} share @param {number} end @param {boolean} most */
function bar(name, share, end, most) {
  const fill = element("span", {class: "av-fill"});
  fill.style.width = `${(end > 0 ? share / end : 0) * 100}%`;
  const track = element("span", {class: "av-track", "aria-hidden": "true"}, fill);
  const number = element("span", {class: "av-amount"}, lengths(share));
  return element("li", most ? {class: "av-most"} : {}, nameNode(name), track, number);
}

/** Colour the heads by how much of their weight moved, and mark the one that is shown.
 * @param {HeadGrid<HeadCell>} grid @param {Ground} ground
 * @param {{heads: (number | null)[][] | null, shown: HeadPlace, ramp: Colour[], spare: number}} told  `spare` is how much
 *   higher than usual they may be, in pixels */
export function drawHeads(grid, {header: {layers}}, {heads, shown, ramp, spare}) {
  const width = grid.table.parentElement?.clientWidth ?? 0;
  const layout = grid.lay({
    width,
    height: width < 500 ? GRID.phone : Math.min(GRID.most, GRID.height + spare),
    broadest: 5,
  });
  const end = roundEnd(Math.max(0, ...(heads ?? []).flat().map((one) => one ?? 0)));
  const writes = layout.width >= ROOM_FOR_NUMBER.width && layout.height >= ROOM_FOR_NUMBER.height;
  for (const {layer, head, node} of grid.cells.values()) {
    const moved = heads?.[layerPlace(layers, layer)]?.[head] ?? 0;
    const colour = onRamp(ramp, end > 0 ? moved / end : 0);
    Object.assign(node.style, {background: rgb(colour), color: inkOn(colour)});
    const words = `${head}: ${percent(moved)} of its weight moved`;
    node.setAttribute("aria-label", `Layer ${layer} head ${words}`);
    node.title = `layer ${layer} head ${words}`;
    const number = /** @type {HTMLElement} */ (node.firstElementChild);
    number.textContent = writes && heads && moved >= LEAST_WRITTEN ? String(Math.round(moved * 100)) : "";
  }
  grid.mark(shown);
}

/** What comes next, before and after; of a model that predicts nothing, how far the whole sentence turned.
 * @param {HTMLElement} place @param {Run} run */
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
        const numbers = element("span", {class: "av-amount"}, `${weightText(before)} \u2192 ${weightText(after)}`);
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
