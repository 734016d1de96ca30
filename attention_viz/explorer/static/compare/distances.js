// The map of all heads by how far each is from its counterpart.

import {HeadGrid, axesOf} from "../heads/cells.js";
import {mostHeads} from "../heads/layout.js";
import {element} from "../parts/element.js";
import {readStyle} from "../parts/style.js";
import {inkOn, onRamp, rgb, weightText} from "../data/scale.js";

/** @import {HeadCell, HeadLayer} from "../heads/cells.js" */

/** Bits of each layer's heads, null for those that can't be compared.
 * @typedef {{title: string, layers: HeadLayer[], bits: (number | null)[][]}} PackedDistances */
/** @typedef {ReturnType<typeof createDistances>} Distances */
/** @typedef {HeadCell & {number: HTMLElement}} DistanceCell */

// How high the map may be, how cells may grow in it, and from how wide a cell its number is written, in pixels.
const [MAP_HEIGHT, WRITES] = [300, 34];
const [NUMBERED, MOST_ROW] = [{broadest: 12, largest: 240}, 52];
// A smaller distance, in bits, is as good as none.
const SAME = 0.0005;
// A number is written from this share of the largest on: below it the cells are as good as white.
const SAYS = 0.1;

/** @param {(layer: number, head: number) => void} choose
 * @param {(cell: DistanceCell | null) => void} point  what hears of a head that is pointed at */
export function createDistances(choose, point) {
  const title = element("h2", {});
  const name = element("span", {});
  title.append(name, " ", element("span", {class: "av-axes"}, axesOf()));
  const legend = element("span", {class: "av-quiet"});
  /** @type {HeadGrid<DistanceCell>} */
  const grid = new HeadGrid("Heads by how much they differ", {
    press: ({layer, head}) => choose(layer, head),
    point,
    reach: point,
  });
  grid.table.addEventListener("focusout", () => point(null));
  const node = element(
    "section",
    {class: "av-distances", hidden: true},
    element("header", {}, title, legend),
    grid.table,
  );
  /** @type {PackedDistances | null} */
  let packed = null;
  const paint = () => {
    if (!packed || grid.table.hidden || !node.isConnected || !node.clientWidth) return;
    const height = Math.min(MAP_HEIGHT, mostHeads(packed.layers) * MOST_ROW);
    const layout = grid.lay({width: node.clientWidth, height, ...NUMBERED});
    const {ramp} = readStyle(node).colours;
    const full = Math.max(1e-9, ...packed.bits.flat().map((one) => one ?? 0));
    for (const {node: cell, row, head, number} of grid.cells.values()) {
      const bits = packed.bits[row][head];
      const colour = bits === null ? null : onRamp(ramp, bits / full);
      Object.assign(cell.style, {background: colour ? rgb(colour) : "", color: colour ? inkOn(colour) : ""});
      const says = bits !== null && bits >= SAYS * full && layout.width >= WRITES;
      number.textContent = says ? weightText(bits) : "";
    }
  };
  return {
    node,
    /** @param {PackedDistances | null} taken */
    build(taken) {
      packed = taken;
      node.hidden = !taken;
      if (!taken) return;
      name.textContent = taken.title;
      const most = Math.max(0, ...taken.bits.flat().map((one) => one ?? 0));
      const isSame = most < SAME;
      grid.table.hidden = isSame;
      if (isSame) {
        legend.textContent = "No head differs: each is 0.00 apart";
        return;
      }
      legend.textContent = `largest: ${weightText(most)} (0 same, 1 nothing in common)`;
      grid.build(taken.layers, (cell) => distanceCell(cell, taken.bits[cell.row][cell.head]));
      paint();
    },
    fit: paint,
    /** @param {number} layer @param {number} head */
    mark: (layer, head) => grid.mark({layer, head}),
  };
}

/** @param {HeadCell} cell @param {number | null} bits @returns {DistanceCell} */
function distanceCell(cell, bits) {
  const number = element("span", {"aria-hidden": "true"});
  const words = `${cell.layer}\u00b7${cell.head}: ${bits === null ? "can\u2019t be compared" : `${bits} bits`}`;
  cell.node.append(number);
  cell.node.title = words;
  cell.node.setAttribute("aria-label", words);
  return {...cell, number};
}
