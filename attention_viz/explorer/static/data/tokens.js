// The tokens along an axis as they stand on the screen: repeated ones told apart, and what each belongs to.

import {partInWords, readCharacters, withCharacter} from "../overview/characters.js";
import {countOccurrences, MARKS, runsFromTheRight, setApart, spell, textOf, withOccurrence} from "./spelling.js";

/** @import {PackedAxis} from "./payload.js"
 * @import {CharacterPart} from "../overview/characters.js" */

/** @typedef {"first" | "second" | "generated"} Origin */

/** The tokens along one axis.
 * @typedef {object} Axis
 * @property {string[]} labels  the tokenizer's own
 * @property {string[]} spelling  how the tokenizer writes each
 * @property {{mark: string, text: string}[]} spellings  how each is written, in two parts
 * @property {string[]} shown  in one part
 * @property {string[]} names  without the sign for a space, repeated ones told apart
 * @property {string[]} numbered  as written, repeated ones told apart
 * @property {string[]} spoken  in words, repeated ones told apart
 * @property {Uint8Array} dimmed  1 for special tokens and padding
 * @property {Uint8Array} words  1 for a word or a piece of one: neither dimmed nor a sign alone, as Python says
 * @property {(Origin | null)[]} origins  what each belongs to; null where there is nothing to tell apart
 * @property {Map<number, number>} chances  the probability that each generated token had
 * @property {boolean} special  whether there are special tokens
 * @property {boolean} padding
 * @property {Int32Array} occurrences  of a repeated token which one it is, from 1; 0 for a token that comes once
 * @property {boolean} repeats
 * @property {number} count
 * @property {Map<number, CharacterPart>} characters  what tokens have of a character that the tokenizer cut
 * @property {boolean} fromTheRight  whether its text runs from right to left
 * @property {(number[] | null)[] | null} place  where each stands in a picture or a sound; null in a text
 * @property {(string | null)[] | null | undefined} [named]  how patches of several images, and latents, are called in a sentence */

/** What tokens may belong to, in words for the legend. @type {Record<Origin, string>} */
export const ORIGINS = {first: "first sentence", second: "second sentence", generated: "generated"};

/** @type {WeakMap<object, Record<string, Int32Array>>} */
const found = new WeakMap();

/** @type {readonly Origin[]} */
export const ORIGIN_NAMES = ["first", "second", "generated"];

/** The tokens along one axis, ready to be shown. @param {PackedAxis} packed @returns {Axis} */
export function readAxis(packed) {
  const {labels, spelling = "unknown", special, padding, signs = [], sentences, generated = [], place: where} = packed;
  const characters = readCharacters(packed.characters ?? []);
  // A patch and a time are no tokenizer's: the space in "0.74 s" is a space.
  const written = typeof spelling === "string" ? new Array(labels.length).fill(spelling) : spelling;
  const spellings = labels.map((label, place) =>
    where?.[place] || packed.named?.[place] ? {mark: "", text: label} : spell(label, written[place]),
  );
  const shown = spellings.map(({mark, text}) => setApart(mark + text));
  // A piece of a character with the character: "ก⟨E0⟩".
  const whole = spellings.map(({text}, at) => withCharacter(text, characters.get(at)));
  const occurrences = countOccurrences(spellings.map(({mark}, at) => mark + whole[at]));
  const dimmed = new Uint8Array(labels.length);
  for (const place of [...special, ...padding]) dimmed[place] = 1;
  const words = dimmed.map((one) => 1 - one);
  for (const place of signs) words[place] = 0;
  const origins = readOrigins(labels.length, sentences, generated);
  const placed = (/** @type {number} */ place) => placeInWords({place: where ?? null, named: packed.named}, place);
  const numbered = spellings.map(({mark}, at) => setApart(withOccurrence(mark + whole[at], occurrences[at])));
  const names = spellings.map(
    ({mark}, at) =>
      placed(at) ?? setApart(withOccurrence((mark === MARKS.space ? "" : mark) + whole[at], occurrences[at])),
  );
  const padded = new Set(padding);
  const spoken = spellings.map(({text}, place) => {
    const said = placed(place);
    if (said !== null) return said + (padded.has(place) ? " (padding)" : "");
    const which = occurrences[place] ? ` (occurrence ${occurrences[place]})` : "";
    const origin = origins[place];
    const part = characters.get(place);
    return (
      (part ? partInWords(part, text) : text) +
      (padded.has(place) ? " (padding)" : "") +
      which +
      (origin ? `, ${ORIGINS[origin]}` : "")
    );
  });
  return {
    labels,
    spelling: written,
    spellings,
    shown,
    names,
    numbered,
    spoken,
    dimmed,
    words,
    origins,
    chances: new Map((packed.chances ?? []).map((chance, at) => [generated[at], chance])),
    characters,
    special: special.length > 0,
    padding: padding.length > 0,
    occurrences,
    repeats: occurrences.some((one) => one > 0),
    count: labels.length,
    fromTheRight: runsFromTheRight(wholeText(labels, written, dimmed)),
    place: where ?? null,
    named: packed.named,
  };
}

/** The text that pieces are together, without special tokens and those that are written in another way.
 * @param {string[]} labels @param {string[]} written @param {Uint8Array} dimmed */
function wholeText(labels, written, dimmed) {
  const how = written[dimmed.indexOf(0)];
  return textOf(
    labels.filter((_, at) => !dimmed[at] && written[at] === how),
    how,
  );
}

/** @param {number} count @param {number[][] | undefined} sentences @param {number[]} generated */
function readOrigins(count, sentences, generated) {
  /** @type {(Origin | null)[]} */
  const origins = new Array(count).fill(null);
  for (const [number, places] of (sentences ?? []).entries())
    for (const place of places) origins[place] = number === 0 ? "first" : "second";
  for (const place of generated) origins[place] = "generated";
  return origins;
}

/** What the positions belong to, to be added to a sentence; nothing where there is nothing to tell apart.
 * @param {{origins: (Origin | null)[]}} axis */
export function originWords({origins}) {
  return ORIGIN_NAMES.filter((origin) => origins.includes(origin))
    .map((origin) => `; ${ORIGINS[origin]}: positions ${origins.indexOf(origin)} to ${origins.lastIndexOf(origin)}`)
    .join("");
}

/** Whether a token begins something else than what stood before it: the second sentence, or what the model says.
 * @param {{origins: (Origin | null)[]}} axis @param {number} place */
export function begins({origins}, place) {
  const origin = origins[place];
  return (origin === "second" || origin === "generated") && origins.indexOf(origin) === place;
}

/** What stands in a picture or a sound, in a sentence: "patch 3, 5" by row and column from 0, or "1.20 s"; null for a
 * word, a class token and the like. `Tokens.placed_at` says it in the same way.
 * @param {Pick<Axis, "place" | "named">} axis @param {number} position */
export function placeInWords({place, named}, position) {
  if (named?.[position]) return named[position];
  const where = place?.[position];
  if (!where) return null;
  return where.length === 1 ? `${where[0].toFixed(2)} s` : patchAt(where[0], where[1]);
}

/** A patch of a picture, by its row and column from 0. @param {number} row @param {number} column */
export function patchAt(row, column) {
  return `patch ${row}, ${column}`;
}

/** The positions of an axis that are on the screen; the same array each time, so that what follows can be kept.
 * @param {{count: number, dimmed: Uint8Array}} axis @param {boolean} hideSpecial */
export function positions(axis, hideSpecial) {
  const before = found.get(axis) ?? {};
  found.set(axis, before);
  return (before[String(hideSpecial)] ??= findPositions(axis, hideSpecial));
}

/** @param {{count: number, dimmed: Uint8Array}} axis @param {boolean} hideSpecial */
function findPositions({count, dimmed}, hideSpecial) {
  const all = Int32Array.from({length: count}, (_, place) => place);
  const kept = hideSpecial ? all.filter((place) => !dimmed[place]) : all;
  return kept.length ? kept : all;
}

/** Fill an element with a token: its mark light, its text isolated; the whole of it on hovering, where it is cut.
 * @param {HTMLElement} node @param {Axis} axis @param {number} place */
export function writeToken(node, axis, place) {
  const {mark, text} = axis.spellings[place];
  const [sign, word] = [document.createElement("span"), document.createElement("bdi")];
  sign.className = "av-mark";
  sign.textContent = mark;
  word.textContent = text;
  // Its number is drawn by the style sheet, at the end of the word, so that the token's text stays the token.
  if (axis.occurrences[place]) word.dataset["occurrence"] = String(axis.occurrences[place]);
  if (runsFromTheRight(text)) word.dir = "rtl";
  node.replaceChildren(...(mark ? [sign, word] : [word]));
  node.title = (axis.characters.has(place) ? axis.spoken[place] : mark + text) + chanceInWords(axis, place);
  return node;
}

/** How likely a generated token was, to follow its name; nothing for others. @param {Axis} axis @param {number} place */
function chanceInWords({chances}, place) {
  const chance = chances.get(place);
  if (chance === undefined) return "";
  return `, generated with probability ${chance < 0.005 ? "below 0.01" : chance.toFixed(2)}`;
}
