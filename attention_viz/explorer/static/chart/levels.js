// The numbers of a grid as levels of colour, pooled where many cells fall under one pixel.

import {SCALES, onRamp, pixel, weightText} from "../data/scale.js";

/** @import {Colour} from "../data/scale.js" */

/** The last two have a colour for each sign; "mixed" is coloured as a head without a softmax is, in equal steps for equal
 * factors.
 * @typedef {"weight" | "size" | "signed" | "mixed"} GridScale */

const [LEVELS, NOTHING, SHUT] = [1000, 1001, 0xffff];

/** The level of each cell, 0 to 1000; a number of its own where there is nothing, and where a cell is blocked.
 * @param {Float32Array | Float64Array} values @param {Uint16Array | null} blocked @param {GridScale} scale
 * @param {number} largest */
export function levelsOf(values, blocked, scale, largest) {
  return Uint16Array.from(values, (value, at) => {
    if (blocked?.[at]) return SHUT;
    if (Number.isNaN(value)) return NOTHING;
    return Math.round(LEVELS * placeOnRamp(value, scale, largest));
  });
}

/** Where a number lies on its ramp, 0 to 1. @param {number} value @param {GridScale} scale @param {number} largest */
export function placeOnRamp(value, scale, largest) {
  if (scale === "mixed") return SCALES.signed.place(value, largest);
  const part = SCALES.maximum.place(Math.abs(value), largest);
  return scale === "signed" ? (1 + Math.sign(value) * part) / 2 : part;
}

/** Whether numbers have a colour for each sign. @param {GridScale} scale */
export function hasSigns(scale) {
  return scale === "signed" || scale === "mixed";
}

/** The pixels of each level; where there is nothing, the page shows through. @param {Colour[]} ramp */
export function levelColours(ramp) {
  const table = Uint32Array.from({length: NOTHING + 1}, (_, level) => pixel(onRamp(ramp, level / LEVELS)));
  table[NOTHING] = 0;
  return table;
}

/** What a pixel shows of the cells below it: of weights half the largest and half the mean, so that neither a lone
 * strong cell nor an even spread is lost; of signed numbers the one farthest from 0.
 * @param {Uint16Array} levels @param {number} columns @param {GridScale} scale */
export function poolOf(levels, columns, scale) {
  return (/** @type {number[]} */ [top, bottom, left, right]) => {
    const only = levels[top * columns + left];
    if (bottom - top === 1 && right - left === 1) return only;
    let [most, sum, count, shut] = [-1, 0, 0, false];
    for (let row = top; row < bottom; row++)
      for (let column = left; column < right; column++) {
        const level = levels[row * columns + column];
        shut ||= level === SHUT;
        if (level > LEVELS) continue;
        [sum, count] = [sum + level, count + 1];
        if (most < 0 || strength(level, scale) > strength(most, scale)) most = level;
      }
    if (count === 0) return shut ? SHUT : NOTHING;
    return hasSigns(scale) ? most : Math.round((most + sum / count) / 2);
  };
}

/** @param {number} level @param {GridScale} scale */
function strength(level, scale) {
  return hasSigns(scale) ? Math.abs(2 * level - LEVELS) : level;
}

/** A number as a cell has it. @param {number} value @param {GridScale} scale @param {number} digits */
export function cellText(value, scale, digits) {
  if (scale === "weight") return weightText(value);
  const text = Math.abs(value).toFixed(digits);
  return `${value < 0 && Number(text) !== 0 ? "\u2212" : ""}${text}`;
}

/** A number as exactly as people can use it: six digits that count. @param {number} value */
export function exactText(value) {
  return String(Number(value.toPrecision(6))).replace("-", "\u2212");
}
