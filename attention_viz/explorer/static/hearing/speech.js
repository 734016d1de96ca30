// What a model says of a sound against the time that it hears meanwhile: rows of words, and where their weight lies.

import {said} from "../claim/said.js";
import {weightText} from "../data/scale.js";

/** @import {Said} from "../seen/telling.js" */
/** @import {Weights} from "../seen/patches.js" */

/** A word that is said: the rows of its pieces, and when it was spoken, in seconds; null where that can't be told.
 * @typedef {{text: string, rows: number[], start: number | null, end: number | null}} Word */

/** The frames of a sound: how many there are in it, and how many seconds each takes. @typedef {{count: number, step: number, seconds: number}} Frames */

// The part of a row's weight that a ribbon ends on, and what of it is left out at either side.
const [BEFORE, AFTER] = [0.1, 0.9];
const [TOLD, THIRD, SILENT, LITTLE] = [0.3, 0.6, 0.5, 0.1];
const THIRDS = ["first", "middle", "last"];

/** The frames along an axis that lie within a sound.
 * @param {{place: (number[] | null)[] | null, count: number}} axis @param {number} seconds @returns {Frames} */
export function framesOf({place, count}, seconds) {
  const begins = (place ?? []).map((one) => one?.[0] ?? Infinity);
  const step = begins.length > 1 ? begins[1] - begins[0] : seconds / Math.max(1, count);
  return {count: Math.max(1, begins.filter((second) => second < seconds).length), step, seconds};
}

/** The weights of a word over the frames: the mean of the rows of its pieces, and of several heads.
 * @param {Weights[]} heads @param {Word} word @param {Frames} frames
 * @param {boolean} after  whether by the rows that have read the word, not by those that are about to write it
 * @param {number} rows  how many there are */
export function rowOfWord(heads, {rows: own}, {count}, after, rows) {
  const line = new Float32Array(count);
  const asked = own.map((row) => Math.min(rows - 1, row + Number(after)));
  for (const head of heads)
    for (const row of asked)
      for (let frame = 0; frame < count; frame++) line[frame] += head.at(row, frame) / (heads.length * asked.length);
  return line;
}

/** From which second to which the middle 80 % of a row's weight inside the sound lies.
 * @param {Float32Array} line @param {Frames} frames @returns {[number, number]} */
export function spanOf(line, frames) {
  const [from, to] = [BEFORE, AFTER].map((share) => secondAt(line, share, frames));
  return from === null || to === null ? [0, frames.seconds] : [from, to];
}

/** The second before which half of a row's weight inside the sound lies; null where next to nothing of it does.
 * @param {Float32Array} line @param {Frames} frames */
export function middleSecond(line, frames) {
  return line.reduce((sum, weight) => sum + weight, 0) < LITTLE ? null : secondAt(line, 0.5, frames);
}

/** The second before which a share of a row's weight inside the sound lies; null where it has none.
 * @param {Float32Array} line @param {number} share @param {Frames} frames */
function secondAt(line, share, {step, seconds}) {
  const all = line.reduce((sum, weight) => sum + weight, 0);
  if (all === 0) return null;
  let sum = 0;
  for (const [frame, weight] of line.entries()) {
    const next = sum + weight / all;
    if (next >= share) return Math.min(seconds, (frame + (share - sum) / (next - sum)) * step);
    sum = next;
  }
  return seconds;
}

/** How much of a row's weight lies in the frames of a stretch of time: out of all frames, never rescaled.
 * @param {Float32Array} line @param {number} start @param {number} end @param {number} step */
export function during(line, start, end, step) {
  return line.reduce(
    (sum, weight, frame) => sum + ((frame + 0.5) * step >= start && (frame + 0.5) * step < end ? weight : 0),
    0,
  );
}

/** Which word has the most weight at a second; -1 where none has enough, so that the last one stays.
 * @param {Float32Array[]} lines @param {number} second @param {number} step */
export function litAt(lines, second, step) {
  const frame = Math.floor(second / step);
  let [best, most] = [-1, 0.02];
  lines.forEach((line, word) => {
    if ((line[frame] ?? 0) > most) [best, most] = [word, line[frame]];
  });
  return best;
}

/** What a head hears for a word, in a sentence.
 * @param {Word} word @param {Float32Array} line @param {Frames} frames @param {boolean} after @returns {Said[]} */
export function tellWord(word, line, frames, after) {
  const named = /** @type {Said} */ ([`\u201c${word.text}\u201d`, "query"]);
  const inside = line.reduce((sum, weight) => sum + weight, 0);
  const who = said`${after ? "After " : "Before "}${named}`;
  if (inside < SILENT) return afterSound(who, inside);
  const begins = said`${who} it attends to `;
  if (word.start !== null && word.end !== null) {
    const share = during(line, word.start, word.end, frames.step);
    const third = (word.end - word.start) / 3;
    const parts = [0, 1, 2].map((part) =>
      during(line, Number(word.start) + part * third, Number(word.start) + (part + 1) * third, frames.step),
    );
    const most = parts.indexOf(Math.max(...parts));
    if (parts[most] >= THIRD)
      return said`${begins}${[`the word\u2019s ${THIRDS[most]} third`, "key"]}: ${[weightText(parts[most]), "number"]}`;
    if (share >= TOLD) return said`${begins}${["that word", "key"]}: ${[weightText(share), "number"]}`;
  }
  return duringSpan(who, line, frames, inside);
}

/** @param {Said[]} who @param {number} inside  how much of the row lies in the sound @returns {Said[]} */
function afterSound(who, inside) {
  return said`${who} it attends to frames after the audio: ${[weightText(1 - inside), "number"]}`;
}

/** @param {Said[]} who @param {Float32Array} line @param {Frames} frames @param {number} inside @returns {Said[]} */
function duringSpan(who, line, frames, inside) {
  const [from, to] = spanOf(line, frames).map((second) => second.toFixed(2));
  const share = weightText(inside * (AFTER - BEFORE));
  return said`${who} it attends to ${[`${from}\u2013${to} s`, "key"]}: ${[share, "number"]}`;
}

/** What a moment of a sound looks at, or what looks at it, in a sentence.
 * @param {Float32Array} line
 * @param {number} chosen  a frame
 * @param {Frames} frames
 * @param {boolean} to  whether it is looked at
 * @returns {Said[]} */
export function tellMoment(line, chosen, frames, to) {
  const second = /** @type {Said} */ ([`${(chosen * frames.step).toFixed(2)} s`, to ? "key" : "query"]);
  const most = line.reduce((best, weight, at) => (weight > line[best] ? at : best), 0);
  const looks = `${(most * frames.step).toFixed(2)} s`;
  if (to)
    return said`The most attention to ${second} comes from ${[looks, "query"]}: ${[weightText(line[most]), "number"]}`;
  const inside = line.reduce((sum, weight) => sum + weight, 0);
  const who = said`At ${second}`;
  return inside < SILENT ? afterSound(who, inside) : duringSpan(who, line, frames, inside);
}
