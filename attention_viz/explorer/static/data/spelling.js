// How one token is written: the tokenizer's marks as light signs, and nothing invisible or misleading. Python's
// `trace/spelling.py` writes tokens in the same way, and says what the spellings are; both are tested on one table.

export const MARKS = {space: "\u00b7", continues: "\u203f"};

const PREFIX = "##";
// Written so that it ends no element of a page that the script stands in.
const SUFFIX = "\u003c/w>";
const FALLBACK = /(?:<0x[0-9A-F]{2}>)+/gu;
// The flags of England, Scotland and Wales; bytes that are half a character; what would be invisible: controls, soft
// hyphen, zero-width space, direction marks and overrides, separators, halves of pairs, spaces of other widths.
const UNSEEN = /\u{1f3f4}[\u{e0020}-\u{e007f}]+|[\udc80-\udcff]+|[\p{Cc}\p{Cf}\p{Cs}\p{Z}]/gu;
const LONE_JOINER = /^[\u200c\u200d]+$/u;
const MARKED = /^[\u00b7\u203f](?=.)|(?<=.)\u203f$/gsu;
const JOINER = /^[\u200c\u200d]$/u;
// Letters and digits of scripts that run from right to left.
const FROM_THE_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
// Bytes and invisible signs, as `signFor` writes them.
const SPELLED_OUT = /\u27e8[^\u27e9]*\u27e9/gu;
// Tokenizers' tokens for an unknown word, in small letters: two of them may stand for different words.
export const UNKNOWN_WORDS = ["[unk]", "<unk>", "<|unk|>"];
/** @type {Record<string, string>} */
const SIGNS = {"\n": "\u21b5", "\t": "\u21e5", "\r": "\u240d", "\u007f": "\u2421", " ": "\u2423"};

const decoder = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});
const BYTES = letters();

/** A label as a light mark and the text after it; both may be empty.
 * @param {string} label  the tokenizer's own
 * @param {string} spelling  how it writes its pieces */
export function spell(label, spelling = "unknown") {
  const text = decode(label, spelling);
  if ((spelling === "unknown" || spelling === "wordpiece") && goesOn(label))
    return {mark: MARKS.continues, text: visible(text)};
  if (spelling !== "text" && spelling !== "wordpiece" && /^ .*[^ ]/su.test(text))
    return {mark: MARKS.space, text: visible(text.slice(1))};
  const open = spelling.endsWith("end-of-word") && !label.endsWith(SUFFIX);
  return {mark: "", text: visible(text) + (open ? MARKS.continues : "")};
}

/** Whether most letters of a text run from right to left. @param {string} text */
export function runsFromTheRight(text) {
  const found = text.replace(SPELLED_OUT, "").match(/\p{L}/gu) ?? [];
  return 2 * found.filter((letter) => FROM_THE_RIGHT.test(letter)).length > found.length;
}

/** A word that runs from right to left isolated, with its marks and number: those before it stand to its right, those
 * after it to its left, and nothing around it is turned.
 * @param {string} written */
export function setApart(written) {
  return FROM_THE_RIGHT.test(written) ? `\u2068${written}\u2069` : written;
}

/** Which of several equal tokens each is, in any case and with any mark, from 1; 0 for a token that comes once.
 * `occurrences` in `trace/spelling.py` counts in the same way; both are tested on one table.
 * @param {string[]} written */
export function countOccurrences(written) {
  const words = written.map((one) => one.replace(MARKED, "").toLowerCase());
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  /** @type {Map<string, number>} */
  const seen = new Map();
  return Int32Array.from(words, (word) => {
    seen.set(word, (seen.get(word) ?? 0) + 1);
    return counts.get(word) === 1 ? 0 : Number(seen.get(word));
  });
}

/** A repeated word with its occurrence, "the\u2082"; any other as it is. @param {string} word @param {number} occurrence */
export function withOccurrence(word, occurrence) {
  const digits = occurrence ? [...String(occurrence)] : [];
  return word + digits.map((digit) => String.fromCharCode(0x2080 + Number(digit))).join("");
}

/** The text of some pieces that follow each other and are written alike, the space before it included.
 * @param {string[]} labels @param {string} spelling */
export function textOf(labels, spelling = "unknown") {
  const joins = spelling.startsWith("byte-level") || spelling === "sentencepiece" || spelling === "bytes";
  return joins && !spelling.endsWith("end-of-word")
    ? decode(labels.join(""), spelling)
    : labels.map((label) => decode(label, spelling)).join("");
}

/** A text with signs for what can't be seen. @param {string} text @returns {string} */
export function visible(text) {
  if (text === "") return "\u2205";
  if (LONE_JOINER.test(text)) return [...text].map(codePoint).join("");
  const written = text.replace(UNSEEN, signFor);
  return /^\p{M}/u.test(written) ? `\u25cc${written}` : written;
}

/** The letter that byte-level BPE (Radford et al. 2019) writes for each byte: a later one for what isn't a visible sign
 * of Latin-1.
 * @returns {Map<string, number>} */
function letters() {
  const found = new Map();
  let others = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    const same = (byte > 32 && byte < 127) || (byte > 160 && byte < 173) || byte > 173;
    found.set(String.fromCharCode(same ? byte : 256 + others), byte);
    if (!same) others += 1;
  }
  return found;
}

/** The text that a piece stands for; bytes that are no whole character become halves of surrogate pairs.
 * @param {string} label @param {string} spelling */
function decode(label, spelling) {
  if (spelling.startsWith("byte-level")) {
    const piece = spelling.endsWith("end-of-word") ? withoutSuffix(label) : label;
    const bytes = [...piece].map((letter) => BYTES.get(letter) ?? null);
    // A piece with other letters was added to the vocabulary as it is.
    return bytes.includes(null) ? piece : fromBytes(bytes.map(Number));
  }
  if (spelling === "bytes") {
    const bytes = [...label].map((letter) => Number(letter.codePointAt(0)));
    return bytes.every((byte) => byte < 256) ? fromBytes(bytes) : label;
  }
  if (spelling === "sentencepiece")
    return label
      .replaceAll("\u2581", " ")
      .replace(FALLBACK, (found) => fromBytes(found.slice(3, -1).split("><0x").map(fromHex)));
  if (spelling === "wordpiece") return goesOn(label) ? label.slice(PREFIX.length) : label;
  if (spelling === "end-of-word") return withoutSuffix(label);
  return spelling === "text" ? label : byItsMarks(label);
}

/** A piece of a tokenizer of which nothing is known. @param {string} label */
function byItsMarks(label) {
  if (label === "\u010a") return "\n";
  if (/^[\u0120\u2581]./su.test(label)) return ` ${label.slice(1)}`;
  return goesOn(label) ? label.slice(PREFIX.length) : label;
}

/** @param {string} label */
function goesOn(label) {
  return label.startsWith(PREFIX) && label.length > PREFIX.length;
}

/** @param {string} label */
function withoutSuffix(label) {
  return label.endsWith(SUFFIX) ? label.slice(0, -SUFFIX.length) : label;
}

/** @param {string} digits */
function fromHex(digits) {
  return parseInt(digits, 16);
}

/** The characters that bytes of UTF-8 are; one that belongs to none becomes half of a surrogate pair.
 * @param {number[]} bytes */
function fromBytes(bytes) {
  let text = "";
  let at = 0;
  while (at < bytes.length) {
    const long = bytes[at] < 0x80 ? 1 : bytes[at] < 0xe0 ? 2 : bytes[at] < 0xf0 ? 3 : 4;
    const character = fromOne(bytes.slice(at, at + long));
    text += character ?? String.fromCharCode(0xdc00 + bytes[at]);
    at += character === null ? 1 : long;
  }
  return text;
}

/** @param {number[]} bytes */
function fromOne(bytes) {
  try {
    return decoder.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** @param {string} found */
function signFor(found) {
  if (found >= "\udc80" && found <= "\udcff") {
    const bytes = [...found].map((half) => (half.charCodeAt(0) - 0xdc00).toString(16).toUpperCase().padStart(2, "0"));
    return `\u27e8${bytes.join(" ")}\u27e9`;
  }
  // Joiners hold emoji and Indic letters together.
  if (found.startsWith("\u{1f3f4}") || JOINER.test(found)) return found;
  return SIGNS[found] ?? (found < " " ? String.fromCharCode(0x2400 + found.charCodeAt(0)) : codePoint(found));
}

/** @param {string} character */
function codePoint(character) {
  return `\u27e8U+${Number(character.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}
