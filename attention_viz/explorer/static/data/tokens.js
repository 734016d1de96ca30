// How tokens are written on the screen: the tokenizer's marks as light signs, and nothing invisible or misleading.

const SPACE_BEFORE = /^[\u0120\u2581](?=.)/su;
const CONTINUES = /^##(?=.)/su;
// Controls, soft hyphen, zero-width space, direction marks and overrides, separators, byte-order mark.
const INVISIBLE = /[\p{Cc}\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const LONE_JOINER = /^[\u200c\u200d]+$/u;
const NAMED = {"\n": "\u21b5", "\t": "\u21e5", "\r": "\u240d", "\u007f": "\u2421"};

/** What tokens may belong to, in words for the legend. */
export const ORIGINS = {first: "first sentence", second: "second sentence", generated: "the model's own"};

export const MARKS = {space: "\u00b7", continues: "\u203f"};

/** A label as a light mark and the text after it; both may be empty. */
export function spelled(label) {
  if (SPACE_BEFORE.test(label)) return {mark: MARKS.space, text: visible(label.slice(1))};
  if (CONTINUES.test(label)) return {mark: MARKS.continues, text: visible(label.slice(2))};
  return {mark: "", text: visible(label)};
}

/** A label's text with everything invisible spelled out. */
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

function codePoint(sign) {
  return `\u27e8U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/**
 * The tokens along one axis: how each is written (`spellings` in two parts, `shown` in one), which are dimmed and why,
 * and names that tell repeated ones apart: short for the eye (`names`), as written (`numbered`), in words (`spoken`).
 * `origins` says of each what it belongs to, as a key of `ORIGINS`; null where there is nothing to tell apart.
 */
export function readAxis({labels, special, padding, sentences = null, generated = []}) {
  const spellings = labels.map(spelled);
  const shown = spellings.map(({mark, text}) => mark + text);
  const times = new Map();
  for (const label of labels) times.set(label, (times.get(label) ?? 0) + 1);
  const dimmed = new Uint8Array(labels.length);
  for (const place of [...special, ...padding]) dimmed[place] = 1;
  const origins = readOrigins(labels.length, sentences, generated);
  const repeated = (place) => times.get(labels[place]) > 1;
  const number = (place) => (repeated(place) ? subscript(place) : "");
  const names = spellings.map(({text}, place) => text + number(place));
  const numbered = shown.map((text, place) => text + number(place));
  const padded = new Set(padding);
  const spoken = spellings.map(({text}, place) => {
    const position = repeated(place) ? ` (position ${place})` : "";
    const origin = origins[place] ? `, ${ORIGINS[origins[place]]}` : "";
    return text + (padded.has(place) ? " (padding)" : "") + position + origin;
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

function readOrigins(count, sentences, generated) {
  const origins = new Array(count).fill(null);
  for (const [number, places] of (sentences ?? []).entries())
    for (const place of places) origins[place] = number === 0 ? "first" : "second";
  for (const place of generated) origins[place] = "generated";
  return origins;
}

/** What the positions belong to, to be added to a sentence; nothing where there is nothing to tell apart. */
export function originWords({origins}) {
  return Object.entries(ORIGINS)
    .filter(([origin]) => origins.includes(origin))
    .map(([origin, words]) => `; ${words}: positions ${origins.indexOf(origin)} to ${origins.lastIndexOf(origin)}`)
    .join("");
}

/** Where a token begins something else than what stood before it: the second sentence, or what the model says. */
export function begins({origins}, place) {
  return ["second", "generated"].includes(origins[place]) && origins.indexOf(origins[place]) === place;
}

function subscript(number) {
  return [...String(number)].map((digit) => String.fromCharCode(0x2080 + Number(digit))).join("");
}

/** The positions of an axis that are on the screen. */
export function positions(axis, hideSpecial) {
  const all = Int32Array.from({length: axis.count}, (_, place) => place);
  const kept = hideSpecial ? all.filter((place) => !axis.dimmed[place]) : all;
  return kept.length ? kept : all;
}

/** Fill an element with a token: its mark light, its text isolated, the tokenizer's own label on hovering. */
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
