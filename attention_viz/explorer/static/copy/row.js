// The tokens of a picture to take along, with the weights of the query's row: all of a short text, of a long one those
// around both ends of the link.

import {MixedHead} from "../data/mixing.js";

/** @import {View} from "../parts/view.js" */

/** A token of the picture; `share` is what of its row the query has there, 0 to 1.
 * @typedef {{label: string, share: number, isQuery: boolean, isKey: boolean}} Shared */

const MOST_TAKEN = 24;
const AROUND_END = 4;
const LEFT_BETWEEN = {label: "\u2026", share: 0, isQuery: false, isKey: false};

/** In the order of the text, the keys of another text first.
 * @param {View["now"]} now @param {boolean} rightToLeft @returns {Shared[]} */
export function weightsOfRow({head, pair, stream, columns}, rightToLeft) {
  if (head === null || pair === null) return [];
  const most = head instanceof MixedHead ? head.most || 1 : 1;
  const shown = keptPlaces([...columns], [pair.key, ...(stream.own ? [pair.query] : [])]);
  const row = shown.map((place) => {
    if (place === null) return LEFT_BETWEEN;
    const share = Math.abs(head.at(pair.query, place)) / most;
    const isQuery = stream.own && place === pair.query;
    return {label: stream.keys.numbered[place], share, isQuery, isKey: place === pair.key && !isQuery};
  });
  if (!stream.own)
    row.push(LEFT_BETWEEN, {label: stream.queries.numbered[pair.query], share: 0, isQuery: true, isKey: false});
  return rightToLeft ? row.reverse() : row;
}

/** The places that are shown; null stands for those left out between two of them.
 * @param {number[]} all @param {number[]} ends @returns {(number | null)[]} */
function keptPlaces(all, ends) {
  if (all.length <= MOST_TAKEN) return all;
  const near = all.filter((place) => ends.some((end) => Math.abs(place - end) <= AROUND_END));
  return near.flatMap((place, at) => (at > 0 && place !== near[at - 1] + 1 ? [null, place] : [place]));
}
