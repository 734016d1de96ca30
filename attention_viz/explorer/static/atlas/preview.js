// The matrix of a head that is pointed at: drawn as the chosen head's is, with its numbers where the page has them.

import {createNumberGrid} from "../chart/grid.js";
import {levelsOf} from "../chart/levels.js";
import {numbersAt} from "../data/payload.js";
import {BLOCKED, FULL_LEVEL} from "./grid.js";

/** @import {GridNumbers} from "../chart/grid.js"
 * @import {Payload} from "../data/payload.js"
 * @import {AtlasCell, AtlasHeader} from "./grid.js" */

const [MOST_LEVEL, SHUT_LEVEL] = [1000, 0xffff];

/** Read the numbers of a short text's heads, and leave them in the header. @param {Payload<AtlasHeader>} payload */
export function readMatrices(payload) {
  const {values} = payload.header;
  if (values) payload.header.matrices = numbersAt(payload, values, Float32Array);
}

/** Draw a head's matrix into an element of the page. @param {HTMLElement} node @param {AtlasHeader} header
 * @param {AtlasCell} cell */
export function drawPreview(node, header, cell) {
  createNumberGrid(node, () => {}).show(matrixOf(header, cell));
  // A picture of the head that nobody walks through: a click chooses it.
  Object.assign(node, {role: "img", ariaLabel: "Pattern: queries down, keys across"});
  for (const name of ["tabindex", "role"]) node.querySelector(".av-stage")?.removeAttribute(name);
}

/** @param {AtlasHeader} header @param {AtlasCell} cell @returns {GridNumbers} */
export function matrixOf({queries, keys, matrices}, {place, pattern, full, of}) {
  const size = queries.length * keys.length;
  const scale = of.drawn === "signed" ? "mixed" : of.drawn ? "size" : "weight";
  const bytes = Array.from({length: size}, (_, at) => {
    const [row, column] = [Math.floor(at / keys.length), at % keys.length];
    return pattern.weights[column * queries.length + row];
  });
  const blocked = bytes.includes(BLOCKED) ? Uint16Array.from(bytes, (byte) => Number(byte === BLOCKED)) : null;
  const values = matrices?.subarray(place * size, (place + 1) * size) ?? new Float32Array(size).fill(NaN);
  const coarse = () =>
    Uint16Array.from(bytes, (byte) => (byte === BLOCKED ? SHUT_LEVEL : Math.round((MOST_LEVEL * byte) / FULL_LEVEL)));
  const levels = matrices ? levelsOf(values, blocked, scale, full) : coarse();
  /** @type {any} */
  const header = {
    ...{kind: "grid", rows: queries, columns: keys, titles: ["Queries", "Keys"], colours: true, scale, digits: 2},
    ...{largest: full, chosen: null, marked: [[], []], words: "A head\u2019s pattern.", clicks: false},
  };
  return {header, values, blocked, levels};
}
