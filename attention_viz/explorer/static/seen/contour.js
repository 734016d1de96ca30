// The line around what has at least half of the largest weight.

import {TOGETHER} from "./patches.js";
import {lightOf} from "./veil.js";

/** A stroke, in parts of the picture's width and height. @typedef {[fromX: number, fromY: number, toX: number, toY: number]} Stroke */

// Points to each side of a patch where weights go over from one to the next.
const FINE = 6;

/** The contour at half of the largest weight: along the patches, or where the smooth light has half of its largest.
 * @param {Float32Array} weights  of the patches, row by row
 * @param {{down: number, across: number}} patches @param {boolean} smooth @returns {Stroke[]} */
export function contourOf(weights, patches, smooth) {
  if (weights.every((weight) => weight === 0)) return [];
  return smooth ? smoothContour(weights, patches) : alongPatches(weights, patches);
}

/** @param {Float32Array} weights @param {{down: number, across: number}} patches @returns {Stroke[]} */
function alongPatches(weights, {down, across}) {
  const most = weights.reduce((so, weight) => Math.max(so, weight), 0);
  const inside = (/** @type {number} */ row, /** @type {number} */ column) =>
    row >= 0 && row < down && column >= 0 && column < across && weights[row * across + column] >= TOGETHER * most;
  /** @type {Stroke[]} */
  const strokes = [];
  for (let row = 0; row <= down; row++)
    for (let column = 0; column <= across; column++) {
      const [x, y] = [column / across, row / down];
      if (inside(row, column) !== inside(row - 1, column)) strokes.push([x, y, x + 1 / across, y]);
      if (inside(row, column) !== inside(row, column - 1)) strokes.push([x, y, x, y + 1 / down]);
    }
  return strokes;
}

/** Marching squares (Lorensen and Cline 1987, in two dimensions) over points between the patches' middles.
 * @param {Float32Array} weights @param {{down: number, across: number}} patches @returns {Stroke[]} */
function smoothContour(weights, patches) {
  const [high, wide] = [FINE * patches.down, FINE * patches.across];
  const light = lightOf(weights, patches, {wide, high, smooth: true});
  /** @type {Stroke[]} */
  const strokes = [];
  for (let row = 0; row + 1 < high; row++)
    for (let column = 0; column + 1 < wide; column++) {
      const at = row * wide + column;
      const crossings = crossingsOf(light[at], light[at + 1], light[at + wide + 1], light[at + wide]);
      for (let one = 0; one + 1 < crossings.length; one += 2) {
        const [[x, y], [toX, toY]] = [crossings[one], crossings[one + 1]];
        const [left, top] = [column + 0.5, row + 0.5];
        strokes.push([(left + x) / wide, (top + y) / high, (left + toX) / wide, (top + toY) / high]);
      }
    }
  return strokes;
}

/** Where the contour crosses the edges of a square, from its upper left corner clockwise.
 * @param {number} a @param {number} b @param {number} c @param {number} d @returns {[x: number, y: number][]} */
function crossingsOf(a, b, c, d) {
  const part = (/** @type {number} */ from, /** @type {number} */ to) => (TOGETHER - from) / (to - from);
  const crosses = (/** @type {number} */ from, /** @type {number} */ to) => from >= TOGETHER !== to >= TOGETHER;
  /** @type {[number, number][]} */
  const found = [];
  if (crosses(a, b)) found.push([part(a, b), 0]);
  if (crosses(b, c)) found.push([1, part(b, c)]);
  if (crosses(d, c)) found.push([part(d, c), 1]);
  if (crosses(a, d)) found.push([0, part(a, d)]);
  return found;
}
