// A head of a long text as a small picture, made from a sample of its rows.

import {readPlane} from "./payload.js";
import {sample} from "./raster.js";

/** @import {Places} from "./head.js"
 * @import {Place} from "./payload.js" */

/** Rows and columns of a picture, of its head, and how many of the head's rows it was made from.
 * @typedef {{down: number, across: number, queries: number, keys: number, sampled: number}} Counts */

/** Weights as even steps of their logarithm: 1 for the faintest, `codes` for 1, and 0 for what is fainter.
 * @typedef {{codes: number, faintest: number}} Coding */

const BLOCKED_CODE = 255;

/** One head's picture: what the grid draws, and the matrix until the head itself is there. */
export class Thumbnail {
  /** @param {Uint8Array} codes  (column, row): 0 for nothing, steps of the logarithm, 255 for blocked
   * @param {Uint8Array} plain  the same without special tokens
   * @param {Counts} counts
   * @param {Float64Array} values  the weight that each code stands for */
  constructor(codes, plain, counts, values) {
    this.whole = patternOf(codes, counts.down);
    this.plain = patternOf(plain, counts.down);
    this.counts = counts;
    this.values = values;
  }

  /** The largest weight in the picture, of which rows and columns are shown.
   * @param {Places} _rows @param {Places} columns */
  maximum(_rows, columns) {
    return this.values[this.pattern(columns).most];
  }

  /** What is drawn where these columns are shown: fewer than all of them are those without special tokens.
   * @param {Places} columns */
  pattern(columns) {
    return columns.length === this.counts.keys ? this.whole : this.plain;
  }

  /** @param {Places} rows @param {Places} columns @param {number} width @param {number} height */
  sample(rows, columns, width, height) {
    const {down, across, queries, keys, sampled} = this.counts;
    const [ownRows, ownColumns] = [under(rows, down, queries, sampled), under(columns, across, keys, keys)];
    return sample(this.pattern(columns), ownRows, ownColumns, width, height);
  }
}

/** @param {Uint8Array} weights  codes
 * @param {number} queries */
function patternOf(weights, queries) {
  const most = weights.reduce((so, code) => (code !== BLOCKED_CODE && code > so ? code : so), 0);
  return {weights, blocked: weights.map((code) => Number(code === BLOCKED_CODE)), queries, most};
}

/** The weight that each code stands for. @param {Coding} coding */
export function codeValues({codes, faintest}) {
  const values = Float64Array.from({length: codes + 1}, (_, code) => faintest ** (1 - (code - 1) / (codes - 1)));
  values[0] = 0;
  return values;
}

/** The code that is nearest to a weight, as Python packs it. @param {number} weight @param {Coding} coding */
export function codeOf(weight, {codes, faintest}) {
  if (weight < faintest) return 0;
  return 1 + Math.round((codes - 1) * Math.min(1, 1 - Math.log(weight) / Math.log(faintest)));
}

/** The rows or columns of the picture under some positions, each once.
 * @param {Places} places
 * @param {number} cells  of the picture
 * @param {number} count  of the head
 * @param {number} sampled  how many of those went into the picture */
function under(places, cells, count, sampled) {
  const wide = Math.ceil(sampled / cells);
  const found = places.map((place) => Math.floor(Math.floor((place * sampled) / count) / wide));
  return found.filter((cell, at) => at === 0 || cell !== found[at - 1]);
}

/** Where a layer's small pictures are: with the text, or in a packet of their own, as `LaterPictures` in payload.py
 * writes it. @typedef {{thumbnails?: Place, plain?: Place}} PackedPictures */

/** A layer's small pictures. @param {{header: PackedPictures, body: Uint8Array}} packed @param {number} heads
 * @param {Counts} counts @param {Float64Array} codes */
export async function readThumbnails({header: {thumbnails, plain}, body}, heads, counts, codes) {
  const [whole, without] = await Promise.all(
    [thumbnails, plain ?? thumbnails].map((at) => readPlane({body}, /** @type {Place} */ (at))),
  );
  const size = counts.down * counts.across;
  const one = (/** @type {Uint8Array} */ plane, /** @type {number} */ head) =>
    plane.subarray(head * size, (head + 1) * size);
  return Array.from({length: heads}, (_, head) => new Thumbnail(one(whole, head), one(without, head), counts, codes));
}

/** Small pictures that a host sends after the text, layer by layer. */
export class LaterPictures {
  constructor() {
    /** @type {Map<string, PromiseWithResolvers<{header: PackedPictures, body: Uint8Array}>>} */
    this.layers = new Map();
  }

  /** A layer's pictures, once they are here. @param {string} stream @param {number} layer */
  wait(stream, layer) {
    return this.entry(stream, layer).promise;
  }

  /** @param {{stream: string, layer: number}} place @param {{header: PackedPictures, body: Uint8Array}} packed */
  take({stream, layer}, packed) {
    this.entry(stream, layer).resolve(packed);
  }

  /** @param {string} stream @param {number} layer */
  entry(stream, layer) {
    const place = `${stream} ${layer}`;
    const entry = this.layers.get(place) ?? Promise.withResolvers();
    this.layers.set(place, entry);
    return entry;
  }
}
