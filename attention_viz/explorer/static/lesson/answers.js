// Answers to the course's exercises, read and explained in the browser as `lesson/exercise.py` does on the server; both
// are tested on the same cases.

/** An answer that was right or wrong, and why. `understood` is false if nothing could be read in it.
 * @typedef {{right: boolean, words: string, understood: boolean}} Verdict */

/** @typedef {[row: number, column: number]} CellPlace */
/** @typedef {{answer: number, words: string}} NumberSlip */
/** @typedef {{answer: CellPlace[], words: string}} CellSlip */

/** What the browser needs to check an answer. `said` and `wrong` are sentences with places for {answer}, {count} and
 * {row}; `explained` has the reply to each option.
 * @typedef {{kind: "number", value: number, within: number, form: string, working: string, arithmetic: string,
 *   said: string, slips: NumberSlip[]}} NumberKey
 * @typedef {{kind: "options", options: string[], right: number[], explained: string[]}} OptionKey
 * @typedef {{kind: "cells", rows: string[], columns: string[], start: CellPlace[], right: CellPlace[],
 *   working: string, wrong: {one: string, many: string}, slips: CellSlip[]}} CellKey
 * @typedef {NumberKey | OptionKey | CellKey} AnswerKey */

// What sums of decimals are off by.
const DUST = 1e-9;
// What Python takes for a space, and other signs that people type for a minus.
const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g; // eslint-disable-line no-control-regex
const MINUSES = /[−–—﹣－]/g;
const PLAIN = /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i;
const GROUPED = /^[+-]?[1-9]\d{0,2}(?:([ .,'’])\d{3})(?:\1\d{3})*$/;

/** Check what was typed. @param {NumberKey} key @param {string} text @returns {Verdict} */
export function checkNumber(key, text) {
  /** @type {number | undefined} */
  let given;
  for (const one of readNumbers(text))
    if (given === undefined || Math.abs(one - key.value) < Math.abs(given - key.value)) given = one;
  if (given === undefined) return {right: false, words: key.form, understood: false};
  const [number, reach] = [given, key.within + DUST];
  if (Math.abs(number - key.value) <= reach) return {right: true, words: key.working, understood: true};
  const slip = key.slips.find(({answer}) => Math.abs(number - answer) <= reach);
  const said = key.said.replaceAll("{answer}", () => writeNumber(number));
  return {right: false, words: `${explainedBy(said, slip)} ${key.arithmetic}`.trim(), understood: true};
}

/** Check the option that was chosen. @param {OptionKey} key @param {number} at @returns {Verdict} */
export function checkOption({right, explained}, at) {
  return {right: right.includes(at), words: explained[at] ?? "", understood: true};
}

/** Check the cells that were marked. @param {CellKey} key @param {readonly CellPlace[]} cells @returns {Verdict} */
export function checkCells(key, cells) {
  const wrong = differing(key.right, cells);
  const [first] = wrong;
  if (!first) return {right: true, words: key.working, understood: true};
  const slip = key.slips.find(({answer}) => !differing(answer, cells).length);
  const [sentence, row] = [wrong.length === 1 ? key.wrong.one : key.wrong.many, key.rows[first[0]] ?? ""];
  const said = sentence.replaceAll(/\{(count|row)\}/g, (_, name) => (name === "row" ? row : String(wrong.length)));
  return {right: false, words: explainedBy(said, slip), understood: true};
}

/** @param {string} said @param {{words: string} | undefined} slip */
function explainedBy(said, slip) {
  return slip ? `${said}: ${slip.words}` : `${said}.`;
}

/** The cells that are in one of two lists only, by row and column.
 * @param {readonly CellPlace[]} one @param {readonly CellPlace[]} other @returns {CellPlace[]} */
function differing(one, other) {
  const names = (/** @type {readonly CellPlace[]} */ cells) => new Set(cells.map(String));
  const [left, right] = [names(one), names(other)];
  const found = [...one.filter((cell) => !right.has(String(cell))), ...other.filter((cell) => !left.has(String(cell)))];
  return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

/** Every number that a text can mean: "1,024" is two. @param {string} text @returns {number[]} */
export function readNumbers(text) {
  const line = latinDigits(text)
    .replace(MINUSES, "-")
    .replace(SPACES, " ")
    .trim()
    .replace(/^[=≈ ]+/, "");
  const joined = line.replaceAll(/ ?([/%]) ?/g, "$1").replace(/^([+-]) /, "$1");
  const percent = joined.endsWith("%");
  const found = readFraction(percent ? joined.slice(0, -1) : joined);
  return found.map((one) => (percent ? one / 100 : one)).filter(Number.isFinite);
}

/** @param {string} text */
function readFraction(text) {
  const at = text.indexOf("/");
  if (at < 0) return readDecimals(text);
  const [above, below] = [readDecimals(text.slice(0, at)), readDecimals(text.slice(at + 1))];
  return above.flatMap((one) => below.filter(Boolean).map((other) => one / other));
}

/** A sign in between may part thousands: that is a second way to read it. @param {string} text */
function readDecimals(text) {
  const found = PLAIN.test(text) ? [Number(text.replace(",", "."))] : [];
  if (GROUPED.test(text)) found.push(Number(text.replaceAll(/[ .,'’]/g, "")));
  return found;
}

/** Digits of any script as ours; each script has them in a row, from 0 to 9. @param {string} text */
function latinDigits(text) {
  return text.replaceAll(/\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    let first = code;
    while (/^\p{Nd}$/u.test(String.fromCodePoint(first - 1))) first--;
    return String((code - first) % 10);
  });
}

/** A number as exercises write it: three decimals at most, a true minus. @param {number} value */
export function writeNumber(value) {
  const size = Math.abs(value);
  const text = size < 1e21 ? roundedToEven(size) : BigInt(size).toString();
  return value < 0 && text !== "0" ? `−${text}` : text;
}

/** Three decimals without zeros at the end; between two of them, as a sixteenth is, the even one. @param {number} size */
function roundedToEven(size) {
  const below = Math.floor(size * 1000);
  const tie = size < 1e12 && (size * 16) % 2 === 1;
  const text = tie && below % 2 === 0 ? (below / 1000).toFixed(3) : size.toFixed(3);
  return text.replace(/\.?0+$/, "");
}
