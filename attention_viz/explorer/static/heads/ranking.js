// All heads of a stream, ranked by one weight: how much a query looks at a key.

/** @import {Head} from "../data/head.js" */

/** @typedef {{layer: number, head: number, weight: number}} RankedHead */

/** The heads that may look from `query` to `key`, heaviest first, whatever the sign; of equals the lower layer and head first.
 *
 * `headAt(layer, head)` gives a head, or null while its layer is not read yet; `complete` tells whether all were there.
 * @param {{heads: number}[]} layers
 * @param {(layer: number, head: number) => Pick<Head, "at" | "isBlocked"> | null} headAt
 * @param {number} query
 * @param {number} key
 * @returns {{ranked: RankedHead[], complete: boolean}} */
export function rankHeads(layers, headAt, query, key) {
  const all = layers.flatMap(({heads}, layer) =>
    Array.from({length: heads}, (_, number) => ({layer, number, head: headAt(layer, number)})),
  );
  const ranked = all
    .flatMap(({layer, number, head}) =>
      head === null || head.isBlocked(query, key) ? [] : [{layer, head: number, weight: head.at(query, key)}],
    )
    .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight) || a.layer - b.layer || a.head - b.head);
  return {ranked, complete: all.every(({head}) => head !== null)};
}
