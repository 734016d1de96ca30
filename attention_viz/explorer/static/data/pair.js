// Which link of a head is told: the one that was found in it, else its strongest between words.

import {layerPlace} from "../heads/numbers.js";

/** @import {AnyHead, Recording, Stream} from "./recording.js"
 * @import {Places} from "./head.js"
 * @import {PackedFinding} from "./payload.js"
 * @import {Axis} from "./tokens.js" */

/** @import {Cell} from "./head.js" */

/** @typedef {{layer: number, head: number}} At  one head of a stream */
/** @typedef {{head: AnyHead | null, rows: Places, columns: Places, stream: Stream}} Drawn */

// As many links of a head as are ever listed.
const MOST_LINKS = 16;
/** @type {WeakMap<AnyHead, {rows: Places, columns: Places, links: Cell[]}>} */
const linked = new WeakMap();

/** Whether a cell links two words. A decoder's first token is looked at for want of anything else; it doesn't count.
 * Nor does what a patch beside words looks at: the words ask about it.
 * @param {Stream} stream */
export function linksWords({name, own, queries, keys}) {
  const first = name.startsWith("decoder") ? 0 : -1;
  const {place, dimmed} = queries;
  const beside = place?.some((one, at) => !one && !dimmed[at]);
  return (/** @type {number} */ query, /** @type {number} */ key) =>
    queries.words[query] === 1 &&
    !(beside && place?.[query]) &&
    keys.words[key] === 1 &&
    key !== first &&
    !(own && query === key);
}

/** What was found in this head, best first.
 * @param {Recording} recording @param {string} stream @param {At} at @returns {PackedFinding | undefined} */
export function findingIn({header, streams}, stream, {layer, head}) {
  const numbers = streams.find(({name}) => name === stream)?.layers ?? [];
  return header.findings?.find(
    (one) => one.stream === stream && layerPlace(numbers, one.layer) === layer && one.head === head,
  );
}

/** What was found at a pair of this head.
 * @param {Recording} recording @param {string} stream @param {At} at
 * @param {{query: number, key: number}} pair @returns {PackedFinding | undefined} */
export function findingAt({header, streams}, stream, {layer, head}, {query, key}) {
  const numbers = streams.find(({name}) => name === stream)?.layers ?? [];
  return header.findings?.find(
    (one) =>
      one.stream === stream &&
      layerPlace(numbers, one.layer) === layer &&
      one.head === head &&
      one.query === query &&
      one.key === key,
  );
}

/** A head's strongest links between words, heaviest first. They are looked for once, as long as the same rows and
 * columns are on the screen: whoever points at cells asks for them again and again.
 * @param {AnyHead} head @param {Places} rows @param {Places} columns @param {Stream} stream */
export function linksOf(head, rows, columns, stream) {
  const before = linked.get(head);
  if (before?.rows === rows && before.columns === columns) return before.links;
  const links = head.strongest(rows, columns, MOST_LINKS, linksWords(stream));
  linked.set(head, {rows, columns, links});
  return links;
}

/** Whether a head's links are known already, so that asking for them takes no time.
 * @param {AnyHead} head @param {Places} rows @param {Places} columns */
export function hasLinks(head, rows, columns) {
  const before = linked.get(head);
  return before?.rows === rows && before.columns === columns;
}

/** The pair of tokens that a head is told by; a text of one word has its word with itself.
 * @param {Recording} recording @param {Drawn} drawn @param {At} at
 * @returns {{query: number, key: number} | null} null before the head has been read */
export function pairIn(recording, {head, rows, columns, stream}, at) {
  const found = findingIn(recording, stream.name, at);
  if (found && rows.includes(found.query) && columns.includes(found.key)) return {query: found.query, key: found.key};
  if (head === null) return null;
  const dimmed = (/** @type {number} */ query, /** @type {number} */ key) =>
    !stream.queries.dimmed[query] && !stream.keys.dimmed[key] && !(stream.own && query === key);
  const best = linksOf(head, rows, columns, stream)[0] ?? head.strongest(rows, columns, 1, dimmed)[0];
  return best ?? {query: firstPlain(rows, stream.queries), key: firstPlain(columns, stream.keys)};
}

/** What one query is told by: what it looks at most among words, else among what isn't special, else at all.
 * @param {Pick<Drawn, "head" | "columns" | "stream">} drawn @param {number} query
 * @returns {{query: number, key: number} | null} null before the head has been read */
export function pairOfRow({head, columns, stream}, query) {
  if (head === null) return null;
  const {name, own, keys} = stream;
  const first = name.startsWith("decoder") ? 0 : -1;
  const other = (/** @type {number} */ key) => !(own && key === query);
  const kinds = [
    (/** @type {number} */ key) => keys.words[key] === 1 && key !== first && other(key),
    (/** @type {number} */ key) => !keys.dimmed[key] && other(key),
    other,
    () => true,
  ];
  for (const accepts of kinds) {
    const best = head.strongest(Int32Array.of(query), columns, 1, (_, key) => accepts(key))[0];
    if (best && best.weight !== 0) return {query, key: best.key};
  }
  return null;
}

/** @typedef {{query: number | null, key: number | null, pairQuery: number | null, pairKey: number | null}} Chosen */

/** Whether a query is pinned of which the reader didn't say the key: that follows the head, as what the query looks at.
 * @param {Readonly<Chosen>} state */
export function keyFollows({query, key, pairQuery, pairKey}) {
  return query !== null && (query !== pairQuery || key !== pairKey);
}

/** Whether what is pinned is let go because another pair is asked for from outside, as after Back; else its key would
 * follow the head, and the pair would be neither.
 * @param {Readonly<Chosen>} state @param {Partial<Chosen>} asked */
export function letsGo({query, pairKey}, asked) {
  return query !== null && (asked.pairQuery !== query || asked.pairKey !== pairKey);
}

/**
 * What is told once a query alone is pinned: what it looks at; once it is let go, what the head is told by.
 * @param {Readonly<Chosen>} state  before
 * @param {Pick<Drawn, "head" | "columns" | "stream">} drawn
 * @param {number | null} query
 * @returns {{pairQuery: number | null, pairKey: number | null, pairChosen: boolean} | null} null where it stays the same
 */
export function pairOfPinned(state, drawn, query) {
  if (query === null) return keyFollows(state) ? {pairQuery: null, pairKey: null, pairChosen: false} : null;
  const pair = pairOfRow(drawn, query);
  return pair && {pairQuery: query, pairKey: pair.key, pairChosen: true};
}

/** @param {Places} places @param {Axis} axis */
function firstPlain(places, {dimmed}) {
  return places.find((place) => !dimmed[place]) ?? places[0];
}
