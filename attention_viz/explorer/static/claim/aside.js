// What the picture's sentence leaves unsaid: where most of a row goes, if little of it goes where it is told.

import {weightText} from "../data/scale.js";
import {placeInWords} from "../data/tokens.js";

/** @import {Drawn} from "../data/pair.js"
 * @import {PackedFinding} from "../data/payload.js" */

// Findings whose number is one between two words, which may be several pieces each.
const BETWEEN_WORDS = new Set(["link", "pronoun", "repeat", "next word", "alignment"]);
// A number that is told with two digits is another one from here on.
const ANOTHER = 0.005;
// What is told is little of its row below the first; the rest of the row is most of it above the second.
const [LITTLE_OF_ROW, MOST_OF_ROW] = [0.25, 0.5];

/** The weight of two pieces, where the sentence tells that of the words they are parts of; null where it is the same.
 * @param {Drawn} drawn @param {{query: number, key: number}} pair
 * @param {Pick<PackedFinding, "kind" | "query" | "key" | "strength"> | undefined} found  in this head */
export function ofPieces({head}, {query, key}, found) {
  if (head === null || found?.query !== query || found.key !== key || !BETWEEN_WORDS.has(found.kind)) return null;
  const weight = head.at(query, key);
  return Math.abs(weight - found.strength) < ANOTHER ? null : weight;
}

/** Whether a finding's sentence is about all rows of a head, or all words that come again.
 * @param {Pick<PackedFinding, "kind" | "parts">} found */
export function isOfAllRows({kind, parts}) {
  const looking = parts.find(([, role]) => role === "query")?.[0] ?? "";
  return !BETWEEN_WORDS.has(kind) && !kind.startsWith("region") && !looking.includes("\u201c");
}

/** Words to follow the sentence of a pair; empty where there is nothing to add.
 * @param {Drawn} drawn @param {{query: number, key: number}} pair */
export function asideOf({head, stream}, {query, key}) {
  if (head === null || head.isBlocked(query, key)) return "";
  const {queries, keys} = stream;
  if (keys.dimmed[key]) return queries.dimmed[query] ? "" : "not a word of the text";
  if (head.at(query, key) >= LITTLE_OF_ROW) return "";
  const all = Int32Array.from({length: keys.count}, (_, place) => place);
  const dimmed = all.filter((place) => keys.dimmed[place]);
  const special = dimmed.reduce((sum, place) => sum + head.at(query, place), 0);
  if (special > MOST_OF_ROW) return `most, ${weightText(special)}, goes to ${leftOutNames(keys)}`;
  const best = head.strongest(Int32Array.of(query), all, 1, () => true)[0];
  if (!best || best.weight <= MOST_OF_ROW) return "";
  const where = placeInWords(keys, best.key) ?? `\u201c${keys.names[best.key]}\u201d`;
  return `most, ${weightText(best.weight)}, goes to ${where}`;
}

/** @param {Drawn["stream"]["keys"]} axis */
function leftOutNames({special, padding}) {
  if (!padding) return "special tokens";
  return special ? "special tokens and padding" : "padding";
}
