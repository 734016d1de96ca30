// A head's weights as pixels: one cell over many pixels, or many cells under one.

/** @import {Places} from "./head.js" */

/** What is drawn of a head: its weights as whole numbers (key, query), and which cells are blocked.
 * @typedef {{weights: Uint16Array | Uint8Array, blocked: Uint8Array | null, queries: number}} Pattern */

/** How blocked cells are drawn: two colours as pixels, and how far apart the strokes are.
 * @typedef {{ground: number, hatch: number, period: number}} Hatching */

const BLOCKED_PIXEL = 0xffff;

/**
 * The weight under each pixel, as whole numbers, for some rows and columns of a head.
 *
 * Where several cells fall under one pixel it gets half of their maximum and half of their mean, so that neither a lone
 * strong cell nor an even spread is lost. A pixel counts as blocked where all of its cells are.
 * @param {Pattern} head @param {Places} rows @param {Places} columns @param {number} width @param {number} height
 */
export function sample(head, rows, columns, width, height) {
  const pool = (/** @type {number[]} */ [top, bottom, left, right]) =>
    pooled(head, rows, columns, top, bottom, left, right);
  return sampleBy(pool, rows.length, columns.length, width, height);
}

/** What `pool` makes of the cells under each pixel, between a top, a bottom, a left and a right one.
 * @param {(cells: number[]) => number} pool @param {number} down  how many rows there are
 * @param {number} across @param {number} width @param {number} height */
export function sampleBy(pool, down, across, width, height) {
  const pixels = new Uint16Array(width * height);
  const [lefts, tops] = [spans(across, width), spans(down, height)];
  const end = (/** @type {Int32Array} */ starts, /** @type {number} */ at) => Math.max(starts[at + 1], starts[at] + 1);
  for (let y = 0; y < height; y++) {
    // Of a short text many pixels lie in one cell: it is looked up once.
    if (y > 0 && isSameSpan(tops, y)) {
      pixels.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    for (let x = 0; x < width; x++)
      pixels[y * width + x] =
        x > 0 && isSameSpan(lefts, x)
          ? pixels[y * width + x - 1]
          : pool([tops[y], end(tops, y), lefts[x], end(lefts, x)]);
  }
  return pixels;
}

/** Whether a pixel has the same cells as the one before it. @param {Int32Array} starts @param {number} at */
function isSameSpan(starts, at) {
  const end = (/** @type {number} */ one) => Math.max(starts[one + 1], starts[one] + 1);
  return starts[at] === starts[at - 1] && end(at) === end(at - 1);
}

/** Where the cells under each pixel begin, on one axis; each pixel has one at least.
 * @param {number} cells @param {number} size */
function spans(cells, size) {
  if (cells >= size) return Int32Array.from({length: size + 1}, (_, at) => Math.round((at * cells) / size));
  return Int32Array.from({length: size + 1}, (_, at) => Math.floor(((at + 0.5) * cells) / size));
}

/** @param {Pattern} head @param {Places} rows @param {Places} columns @param {number} top @param {number} bottom
 * @param {number} left @param {number} right */
function pooled({weights, blocked, queries}, rows, columns, top, bottom, left, right) {
  let [most, sum, open] = [0, 0, 0];
  for (let x = left; x < right; x++) {
    const base = columns[x] * queries;
    for (let y = top; y < bottom; y++) {
      const cell = base + rows[y];
      if (blocked !== null && blocked[cell]) continue;
      open += 1;
      sum += weights[cell];
      if (weights[cell] > most) most = weights[cell];
    }
  }
  return open ? Math.round((most + sum / open) / 2) : BLOCKED_PIXEL;
}

/** Colour sampled weights; blocked ones are hatched from the lower left to the upper right.
 * @param {Uint16Array} pixels @param {number} width @param {number} height @param {Uint32Array} table
 * @param {Hatching} hatching */
export function coloured(pixels, width, height, table, {ground, hatch, period}) {
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  const stroke = Math.max(1, Math.round(period / 5));
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const level = pixels[y * width + x];
      if (level === BLOCKED_PIXEL) out[y * width + x] = (x + y) % period < stroke ? hatch : ground;
      else out[y * width + x] = table[level];
    }
  return image;
}
