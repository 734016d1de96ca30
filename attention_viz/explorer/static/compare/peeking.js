// The chosen query's rows of all heads, so that pointing at a head on the map shows its row at once.

import {weightText} from "../data/scale.js";

/** @import {CompareHeader, Phrase} from "./compare.js" */

/** @typedef {{query: number, rowsOf: (place: number) => [one: Float32Array, other: Float32Array]}} HeadRows */

/** Read the rows that `head_rows` in compare_payload.py packs, in the order of the map's cells: the first side's, then the
 * second's; null where there are none.
 * @param {string} bytes  of float32, in base64 @param {number} query @param {number} width  how many keys
 * @returns {HeadRows | null} */
export function readHeadRows(bytes, query, width) {
  if (!bytes || !width) return null;
  const raw = atob(bytes);
  const numbers = new Float32Array(Uint8Array.from(raw, (one) => one.charCodeAt(0)).buffer);
  const half = numbers.length / 2;
  const rowAt = (/** @type {number} */ start, /** @type {number} */ place) =>
    numbers.slice(start + place * width, start + (place + 1) * width);
  return {query, rowsOf: (place) => [rowAt(0, place), rowAt(half, place)]};
}

/** The key with the largest weight. @param {Float32Array} row */
export function largestKey(row) {
  const size = (/** @type {number} */ weight) => (Number.isFinite(weight) ? Math.abs(weight) : -1);
  return row.reduce((best, weight, at) => (size(weight) > size(row[best]) ? at : best), 0);
}

/** What a query looks at most in each of two heads. @param {CompareHeader} header @param {number} query
 * @param {number[]} at  the keys' places @param {number[]} weights @returns {Phrase} */
export function peekPhrase({queries, keys, where}, query, at, weights) {
  const [one, other] = (queries ?? keys)[query];
  /** @type {Phrase} */
  const parts = [
    [one ?? other ?? "", "query"],
    [" \u2192 ", ""],
    [keys[at[0]][0] ?? keys[at[0]][1] ?? "", "key"],
    [": ", ""],
    [weightText(weights[0]), "number"],
    [`. ${where} \u2192 `, ""],
    [keys[at[1]][1] ?? keys[at[1]][0] ?? "", "key"],
    [": ", ""],
    [weightText(weights[1]), "number"],
  ];
  return weights.every(Number.isFinite) ? parts : [["This head has no row of this word in both", ""]];
}
