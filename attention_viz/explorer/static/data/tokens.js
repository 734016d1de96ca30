// How tokens are written on the screen: the tokenizer's marks as light signs, and nothing invisible or misleading.

/** @import {PackedAxis} from "./payload.js" */

/** @typedef {"first" | "second" | "generated"} Origin */

/**
 * The tokens along one axis.
 * @typedef {object} Axis
 * @property {string[]} labels  the tokenizer's own
 * @property {{mark: string, text: string}[]} spellings  how each is written, in two parts
 * @property {string[]} shown  in one part
 * @property {string[]} names  short, repeated ones told apart
 * @property {string[]} numbered  as written, repeated ones told apart
 * @property {string[]} spoken  in words, repeated ones told apart
 * @property {Uint8Array} dimmed  1 for special tokens and padding
 * @property {(Origin | null)[]} origins  what each belongs to; null where there is nothing to tell apart
 * @property {boolean} special  whether there are special tokens
 * @property {boolean} padding
 * @property {boolean} repeats
 * @property {number} count
 */

const SPACE_BEFORE = /^[\u0120\u2581](?=.)/su;
const CONTINUES = /^##(?=.)/su;
// Controls, soft hyphen, zero-width space, direction marks and overrides, separators, byte-order mark.
const INVISIBLE = /[\p{Cc}\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const LONE_JOINER = /^[\u200c\u200d]+$/u;
/** @type {Record<string, string>} */
const NAMED = {"\n": "\u21b5", "\t": "\u21e5", "\r": "\u240d", "\u007f": "\u2421"};

/**
 * What tokens may belong to, in words for the legend.
 * @type {Record<Origin, string>}
 */
export const ORIGINS = {first: "first sentence", second: "second sentence", generated: "the model's own"};

/** @type {readonly Origin[]} */
export const ORIGIN_NAMES = ["first", "second", "generated"];

export const MARKS = {space: "\u00b7", continues: "\u203f"};

/**
 * A label as a light mark and the text after it; both may be empty.
 * @param {string} label
 */
export function spelled(label) {
  if (SPACE_BEFORE.test(label)) return {mark: MARKS.space, text: visible(label.slice(1))};
  if (CONTINUES.test(label)) return {mark: MARKS.continues, text: visible(label.slice(2))};
  return {mark: "", text: visible(label)};
}

/**
 * A label's text with everything invisible spelled out.
 * @param {string} label
 * @returns {string}
 */
export function visible(label) {
  if (label === "") return "\u2205";
  if (label === "\u010a") return NAMED["\n"];
  if (LONE_JOINER.test(label)) return [...label].map(codePoint).join("");
  const text = label
    .replace(
      INVISIBLE,
      (sign) => NAMED[sign] ?? (sign < " " ? String.fromCharCode(0x2400 + sign.charCodeAt(0)) : codePoint(sign)),
    )
    .replace(/^ +| +$/gu, (spaces) => "\u2423".repeat(spaces.length));
  return /^\p{M}/u.test(text) ? `\u25cc${text}` : text;
}

/** @param {string} sign */
function codePoint(sign) {
  return `\u27e8U+${Number(sign.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/**
 * The tokens along one axis, ready to be shown.
 * @param {PackedAxis} packed
 * @returns {Axis}
 */
export function readAxis({labels, special, padding, sentences, generated = []}) {
  const spellings = labels.map(spelled);
  const shown = spellings.map(({mark, text}) => mark + text);
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const label of labels) times.set(label, (times.get(label) ?? 0) + 1);
  const dimmed = new Uint8Array(labels.length);
  for (const place of [...special, ...padding]) dimmed[place] = 1;
  const origins = readOrigins(labels.length, sentences, generated);
  const repeated = (/** @type {number} */ place) => Number(times.get(labels[place])) > 1;
  const number = (/** @type {number} */ place) => (repeated(place) ? subscript(place) : "");
  const names = spellings.map(({text}, place) => text + number(place));
  const numbered = shown.map((text, place) => text + number(place));
  const padded = new Set(padding);
  const spoken = spellings.map(({text}, place) => {
    const position = repeated(place) ? ` (position ${place})` : "";
    const origin = origins[place];
    return text + (padded.has(place) ? " (padding)" : "") + position + (origin ? `, ${ORIGINS[origin]}` : "");
  });
  return {
    labels,
    spellings,
    shown,
    names,
    numbered,
    spoken,
    dimmed,
    origins,
    special: special.length > 0,
    padding: padding.length > 0,
    repeats: times.size < labels.length,
    count: labels.length,
  };
}

/**
 * @param {number} count
 * @param {number[][] | undefined} sentences
 * @param {number[]} generated
 */
function readOrigins(count, sentences, generated) {
  /** @type {(Origin | null)[]} */
  const origins = new Array(count).fill(null);
  for (const [number, places] of (sentences ?? []).entries())
    for (const place of places) origins[place] = number === 0 ? "first" : "second";
  for (const place of generated) origins[place] = "generated";
  return origins;
}

/**
 * What the positions belong to, to be added to a sentence; nothing where there is nothing to tell apart.
 * @param {{origins: (Origin | null)[]}} axis
 */
export function originWords({origins}) {
  return ORIGIN_NAMES.filter((origin) => origins.includes(origin))
    .map((origin) => `; ${ORIGINS[origin]}: positions ${origins.indexOf(origin)} to ${origins.lastIndexOf(origin)}`)
    .join("");
}

/**
 * Whether a token begins something else than what stood before it: the second sentence, or what the model says.
 * @param {{origins: (Origin | null)[]}} axis
 * @param {number} place
 */
export function begins({origins}, place) {
  const origin = origins[place];
  return (origin === "second" || origin === "generated") && origins.indexOf(origin) === place;
}

/** @param {number} number */
function subscript(number) {
  return [...String(number)].map((digit) => String.fromCharCode(0x2080 + Number(digit))).join("");
}

/**
 * The positions of an axis that are on the screen.
 * @param {{count: number, dimmed: Uint8Array}} axis
 * @param {boolean} hideSpecial
 */
export function positions(axis, hideSpecial) {
  const all = Int32Array.from({length: axis.count}, (_, place) => place);
  const kept = hideSpecial ? all.filter((place) => !axis.dimmed[place]) : all;
  return kept.length ? kept : all;
}

/**
 * Fill an element with a token: its mark light, its text isolated, the tokenizer's own label on hovering.
 * @param {HTMLElement} node
 * @param {Axis} axis
 * @param {number} place
 */
export function writeToken(node, axis, place) {
  const {mark, text} = axis.spellings[place];
  const [sign, word] = [document.createElement("span"), document.createElement("bdi")];
  sign.className = "av-mark";
  sign.textContent = mark;
  word.textContent = text;
  node.replaceChildren(...(mark ? [sign, word] : [word]));
  node.title = axis.labels[place];
  return node;
}
