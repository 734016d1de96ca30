// A head of a long text as a small picture, made from a sample of its rows.

import {sample} from "./raster.js";

/** @import {Places} from "./head.js" */

/**
 * Rows and columns of a picture, of its head, and how many of the head's rows it was made from.
 * @typedef {{down: number, across: number, queries: number, keys: number, sampled: number}} Counts
 */

/**
 * Weights as even steps of their logarithm: 1 for the faintest, `codes` for 1, and 0 for what is fainter.
 * @typedef {{codes: number, faintest: number}} Coding
 */

const BLOCKED_CODE = 255;

/** One head's picture: what the grid draws, and the matrix until the head itself is there. */
export class Thumbnail {
  /**
   * @param {Uint8Array} codes  (column, row): 0 for nothing, steps of the logarithm, 255 for blocked
   * @param {Counts} counts
   * @param {Float64Array} values  the weight that each code stands for
   */
  constructor(codes, counts, values) {
    this.pattern = {weights: codes, blocked: codes.map((code) => Number(code === BLOCKED_CODE)), queries: counts.down};
    this.counts = counts;
    this.values = values;
    this.most = values[codes.reduce((most, code) => (code !== BLOCKED_CODE && code > most ? code : most), 0)];
  }

  /** The largest weight in the picture, whatever is in sight of it. */
  maximum() {
    return this.most;
  }

  /**
   * @param {Places} rows
   * @param {Places} columns
   * @param {number} width
   * @param {number} height
   */
  sample(rows, columns, width, height) {
    const {down, across, queries, keys, sampled} = this.counts;
    const [ownRows, ownColumns] = [under(rows, down, queries, sampled), under(columns, across, keys, keys)];
    return sample(this.pattern, ownRows, ownColumns, width, height);
  }
}

/**
 * The weight that each code stands for.
 * @param {Coding} coding
 */
export function codeValues({codes, faintest}) {
  const values = Float64Array.from({length: codes + 1}, (_, code) => faintest ** (1 - (code - 1) / (codes - 1)));
  values[0] = 0;
  return values;
}

/**
 * The code that is nearest to a weight, as Python packs it.
 * @param {number} weight
 * @param {Coding} coding
 */
export function codeOf(weight, {codes, faintest}) {
  if (weight < faintest) return 0;
  return 1 + Math.round((codes - 1) * Math.min(1, 1 - Math.log(weight) / Math.log(faintest)));
}

/**
 * The rows or columns of the picture under some positions, each once.
 * @param {Places} places
 * @param {number} cells  of the picture
 * @param {number} count  of the head
 * @param {number} sampled  how many of those went into the picture
 */
function under(places, cells, count, sampled) {
  const wide = Math.ceil(sampled / cells);
  const found = places.map((place) => Math.floor(Math.floor((place * sampled) / count) / wide));
  return found.filter((cell, at) => at === 0 || cell !== found[at - 1]);
}
