// Who may look at whom: the masks by their names, what a stroke makes of one, and what the softmax makes of it.

import {layerPlace} from "../heads/numbers.js";

/** A mask as the page keeps it: by name with its number, or drawn; null stands for all layers, or all heads.
 * @typedef {{mask: string, window: number, prefix: number, in_layer: number | null,
 *   in_head: number | null}} MaskChoice */

/** @typedef {"cell" | "row" | "column"} Brush */

/** Cells of a matrix, row by row: 1 where a query may look. @typedef {Uint8Array} Cells */

// In the order in which they stand; these follow from the number of tokens alone.
export const COMPUTED = ["none", "causal", "window", "prefix"];
export const BATCHED = ["padding", "both"];

/** What a mask leaves open, before the model's own is put on top; null for one that follows from more than sizes.
 * @param {string} mask
 * @param {number} count  of tokens
 * @param {{window: number, prefix: number}} numbers @returns {Cells | null} */
export function openCells(mask, count, {window, prefix}) {
  /** @type {Record<string, (query: number, key: number) => boolean>} */
  const rules = {
    none: () => true,
    causal: (query, key) => key <= query,
    window: (query, key) => Math.abs(query - key) < window,
    prefix: (query, key) => key <= query || key < prefix,
  };
  if (!Object.hasOwn(rules, mask)) return null;
  const cells = new Uint8Array(count * count);
  for (let query = 0; query < count; query++)
    for (let key = 0; key < count; key++) cells[query * count + key] = rules[mask](query, key) ? 1 : 0;
  return cells;
}

/** The cells of eight in a byte, the first one highest.
 * @param {Uint8Array} bytes @param {number} count @returns {Cells} */
export function unpackBits(bytes, count) {
  return Uint8Array.from({length: count}, (_, at) => (bytes[at >> 3] >> (7 - (at & 7))) & 1);
}

/** Cells as letters: eight in a byte, in base64. @param {Cells} cells */
export function bitsOf(cells) {
  const bytes = new Uint8Array(Math.ceil(cells.length / 8));
  cells.forEach((cell, at) => {
    bytes[at >> 3] |= cell << (7 - (at & 7));
  });
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** The bytes of base64. @param {string} text */
export function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  // A loop: a run's weights are most of a megabyte, and a call for each letter takes longer than to draw them.
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/** The cells that are open in both. @param {Cells} one @param {Cells} other @returns {Cells} */
export function both(one, other) {
  return one.map((cell, at) => cell & other[at]);
}

/** Block or open what a brush touches; what the model itself blocks stays as it is.
 * @param {Cells} added @param {Cells} own @param {number} count
 * @param {{brush: Brush, size: number, query: number, key: number, open: boolean}} stroke */
export function paint(added, own, count, {brush, size, query, key, open}) {
  const reach = (/** @type {number} */ place) => {
    const first = Math.max(0, Math.min(place - Math.floor((size - 1) / 2), count - size));
    return [first, Math.min(count, first + size)];
  };
  const [top, bottom] = brush === "column" ? [0, count] : reach(query);
  const [left, right] = brush === "row" ? [0, count] : reach(key);
  for (let row = top; row < bottom; row++)
    for (let column = left; column < right; column++)
      if (own[row * count + column]) added[row * count + column] = open ? 1 : 0;
}

/** Whether a stroke that begins here opens cells: where all that it touches are blocked, and the model leaves some
 * open.
 * @param {Cells} added @param {Cells} own @param {number} count
 * @param {{brush: Brush, query: number, key: number}} place */
export function opens(added, own, count, {brush, query, key}) {
  if (brush === "cell") return !added[query * count + key];
  for (let at = 0; at < count; at++) {
    const cell = brush === "row" ? query * count + at : at * count + key;
    if (own[cell] && added[cell]) return false;
  }
  return true;
}

/** The name of the mask that blocks the same cells as a drawing, beside those of the model's own; else "drawn".
 * @param {Cells} added @param {Cells} own @param {number} count @param {{window: number, prefix: number}} numbers */
export function nameOf(added, own, count, numbers) {
  const same = (/** @type {Cells} */ cells) => cells.every((cell, at) => !own[at] || cell === added[at]);
  return COMPUTED.find((mask) => same(/** @type {Cells} */ (openCells(mask, count, numbers)))) ?? "drawn";
}

/** The softmax of each row over its open cells; a row without any is 0.
 * @param {Float32Array} logits @param {Cells} open @param {number} keys
 * @param {number | null} sink  one more logit, which takes its share */
export function softmaxOver(logits, open, keys, sink) {
  const weights = new Float64Array(logits.length);
  for (let start = 0; start < logits.length; start += keys) {
    let most = sink ?? -Infinity;
    for (let at = start; at < start + keys; at++) if (open[at] && logits[at] > most) most = logits[at];
    if (most === -Infinity) continue;
    let sum = sink === null ? 0 : Math.exp(sink - most);
    for (let at = start; at < start + keys; at++) {
      weights[at] = open[at] ? Math.exp(logits[at] - most) : 0;
      sum += weights[at];
    }
    for (let at = start; at < start + keys; at++) weights[at] /= sum;
  }
  return weights;
}

/** Whether a mask acts in a head. @param {MaskChoice} choice @param {number} layer @param {number} head */
export function actsIn({in_layer, in_head}, layer, head) {
  return (in_layer ?? layer) === layer && (in_head ?? head) === head;
}

/** Whether what a layer reads stays as it is: nothing was blocked in a layer before it.
 * @param {MaskChoice} choice @param {number} layer @param {{number?: number}[]} layers  all that attend */
export function readsTheSame({in_layer}, layer, layers) {
  return in_layer === null ? layerPlace(layers, layer) === 0 : in_layer >= layer;
}

/** The heaviest link that was cut: between words, where one of at least a twentieth was, else of any tokens.
 * @param {Float64Array} before @param {Cells} open @param {number} keys
 * @param {Set<number>} others  the tokens that are no words */
export function heaviestCut(before, open, keys, others) {
  const heaviest = (/** @type {(query: number, key: number) => boolean} */ counts) => {
    let found = {query: -1, key: -1, weight: 0};
    for (let at = 0; at < before.length; at++) {
      const [query, key] = [Math.floor(at / keys), at % keys];
      if (!open[at] && Math.abs(before[at]) > Math.abs(found.weight) && counts(query, key))
        found = {query, key, weight: before[at]};
    }
    return found.weight !== 0 ? found : null;
  };
  const ofWords = heaviest((query, key) => !others.has(query) && !others.has(key));
  return ofWords && Math.abs(ofWords.weight) >= 0.05 ? ofWords : heaviest(() => true);
}

/** The place of the largest of a row. @param {Float64Array} matrix @param {number} row @param {number} keys */
export function largestOf(matrix, row, keys) {
  let best = 0;
  for (let key = 1; key < keys; key++) if (matrix[row * keys + key] > matrix[row * keys + best]) best = key;
  return best;
}
