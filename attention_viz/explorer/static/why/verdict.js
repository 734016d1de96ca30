// Why a query chooses a key where no head came before, in words. No element is made here.

import {plainNumber, wordAt} from "./reading.js";

/** @import {WhyHeader} from "./reading.js" */

/** What `split_header` packs. `pairs` has each key's products, the query's parts times the key's.
 * @typedef {object} SplitHeader
 * @property {number} layer
 * @property {number} head
 * @property {number} query
 * @property {number} key
 * @property {string} fixed  why no other word can be at the key; empty if one can
 * @property {string} [refused]  why there is no split
 * @property {string[]} names
 * @property {number[]} keys
 * @property {number[][]} pairs
 * @property {number[]} scores
 * @property {number[] | null} beside
 * @property {number[] | null} together
 * @property {number[]} shared
 * @property {number[]} weights
 * @property {"embedded" | "turned" | "added" | "none" | "unknown"} places
 * @property {boolean} softcap */

/** One key's score as the sum of its parts.
 * @typedef {{at: number, parts: number[], score: number, weight: number}} KeyRow */

// A part that moves less than this share of another's isn't what decides.
const MINOR = 1 / 3;

/** The names of the parts that a key's score is shown as. @param {SplitHeader} split */
export function partsOf({names, together, beside}) {
  if (together) return ["word", "distance"];
  return beside ? [...names, "distance"] : names;
}

/** How a part is called. @param {string} name @param {string} unit */
export function partName(name, unit) {
  if (name === "word") return unit;
  return name === "bias" ? "biases" : name === "other" ? "other parts" : name;
}

/** Each key's score, split. @param {SplitHeader} split @returns {KeyRow[]} */
export function rowsOf({names, keys, pairs, scores, beside, together, weights}) {
  return keys.map((at, row) => {
    const byKey = names.map((_, part) =>
      names.reduce((sum, _name, mine) => sum + pairs[row][mine * names.length + part], 0),
    );
    const parts = together ? [together[row], scores[row] - together[row]] : beside ? [...byKey, beside[row]] : byKey;
    return {at, parts, score: scores[row] + (beside?.[row] ?? 0), weight: weights[row]};
  });
}

/** How much more each part gives a row than another, or than the mean of others.
 * @param {KeyRow} row @param {KeyRow[]} others */
export function ahead(row, others) {
  return row.parts.map((one, part) => one - others.reduce((sum, other) => sum + other.parts[part], 0) / others.length);
}

/** What decides, of the word's lead and the place's: "for the word, not for its place".
 * @param {number} word @param {number} place @param {string} noun @param {string} where */
export function reasonOf(word, place, noun, where) {
  const [small, large] = [Math.min(Math.abs(word), Math.abs(place)), Math.max(Math.abs(word), Math.abs(place))];
  const isMinor = small < MINOR * large;
  if (word > 0 && place > 0 && !isMinor) return `for the ${noun} and for its ${where}`;
  if (word > 0 && word >= Math.abs(place)) return `for the ${noun}, ${isMinor ? "not for" : "against"} its ${where}`;
  if (place > 0 && place >= Math.abs(word))
    return `for its ${where}, ${isMinor ? `not for the ${noun}` : `against the ${noun}`}`;
  return `against both ${noun} and ${where}`;
}

/** The headline: who, what it does, which key, and why.
 * @typedef {{query: string, verb: string, key: string, than: string, reason: string}} Verdict */

/** @param {WhyHeader} header @param {SplitHeader} split
 * @param {number | null} compared  the key that the chosen one is compared with, instead of all others
 * @returns {Verdict} */
export function verdictOf(header, split, compared = null) {
  const [all, names] = [rowsOf(split), partsOf(split)];
  const mine = /** @type {KeyRow} */ (all.find(({at}) => at === split.key) ?? all[0]);
  const other = all.find(({at}) => at === compared && at !== mine.at);
  const rows = other ? [mine, other] : all;
  const top = rows.reduce((most, row) => (row.score > most.score ? row : most), mine);
  const named = (/** @type {number} */ at) => (header.own && at === split.query ? "itself" : wordAt(header, "key", at));
  const query = wordAt(header, "query", split.query);
  if (rows.length === 1) return {query, verb: "has only", key: named(mine.at), than: "", reason: "to choose from"};
  const isTop = top === mine;
  const lead = ahead(top, isTop ? rows.filter((row) => row !== mine) : [mine]);
  const where = names.find((name) => name === "place" || name === "distance");
  const noun = header.units.key;
  const reason = where
    ? reasonOf(lead[names.indexOf("word")] ?? 0, lead[names.indexOf(where)], noun, where)
    : split.places === "none"
      ? `for the ${noun} alone`
      : `for the ${noun} where it is`;
  if (isTop && !other) return {query, verb: "chooses", key: named(mine.at), than: "", reason};
  const less = other && isTop ? other : mine;
  return {query, verb: "prefers", key: named(top.at), than: named(less.at), reason};
}

/** A score as a sum in words: "5.05 = word +3.88, place +2.05, biases −0.88".
 * @param {KeyRow} row @param {string[]} names @param {string} unit */
export function sumInWords(row, names, unit) {
  if (names.length === 1) return `score ${plainNumber(row.score)}`;
  return `${plainNumber(row.score)} = ${inWords(row.parts, names, unit)}`;
}

/** Numbers by part: "word +3.88, place +2.05". @param {number[]} numbers @param {string[]} names @param {string} unit */
export function inWords(numbers, names, unit) {
  const sign = (/** @type {number} */ one) =>
    `${one < 0 && one.toFixed(2) !== "-0.00" ? "−" : "+"}${Math.abs(one).toFixed(2)}`;
  return names.map((name, part) => `${partName(name, unit)} ${sign(numbers[part])}`).join(", ");
}

/** Why one key's score is another's: "0.58 more than “flooded”: word +0.57, …".
 * @param {WhyHeader} header @param {KeyRow} mine @param {KeyRow} other @param {string[]} names */
export function comparedWith(header, mine, other, names) {
  const [gap, word] = [mine.score - other.score, wordAt(header, "key", other.at)];
  const beginning = `${wordAt(header, "key", mine.at)} scores ${Math.abs(gap).toFixed(2)} ${gap < 0 ? "less" : "more"} than ${word}`;
  return `${beginning}: ${inWords(ahead(mine, [other]), names, header.units.key)}.`;
}

/** What the distance does to a score, where positions turn queries and keys.
 * @param {SplitHeader} split @param {KeyRow} row */
export function turnedInWords({query}, row) {
  const [steps, change] = [Math.abs(query - row.at), row.parts[1]];
  if (steps === 0) return "Query and key have the same place, so no distance counts.";
  const does =
    Math.abs(change) < 0.005
      ? "changes nothing"
      : change > 0
        ? `adds ${change.toFixed(2)}`
        : `takes ${Math.abs(change).toFixed(2)}`;
  return `This model rotates queries and keys by their place. At one place they would score ${plainNumber(row.parts[0])}; the rotation over ${steps} ${steps === 1 ? "place" : "places"} ${does}.`;
}
