// A head of a long text: its weights are computed from its query and its key when they are asked for.

import {numberOf} from "./payload.js";
import {sample} from "./raster.js";
import {Strongest} from "./strongest.js";

/** @import {BlockMap, MeanMap} from "./blockmap.js"
 * @import {Places} from "./head.js"
 * @import {OpenKeys} from "./pattern.js" */

/** What a weight follows from: exp(logit \u2212 normaliser), where the logit is query \u00b7 key \u00d7 scale, capped, and
 * biased; each row has a normaliser, query and key are `width` numbers a row, and `open` is null if nothing is blocked.
 * @typedef {{queries: number, keys: number, width: number, scale: number, softcap: number | null, query: Float32Array,
 *   key: Float32Array, normalisers: Float64Array, open: OpenKeys | null,
 *   bias: {along: "key" | "distance", numbers: Float32Array} | null}} Terms */

/**
 * The weights themselves (key, query) in so many even steps from 0 to 1, where a head's bias has as many numbers.
 * @typedef {{queries: number, keys: number, open: OpenKeys | null, weights: Uint16Array, steps: number}} KnownWeights
 */

// Up to so many cells each is computed; of more the map is drawn.
export const MOST_COMPUTED = 512 * 512;
// Cells are computed and kept in squares, so that moving computes only what comes into sight.
const SQUARE = 64;
const MOST_SQUARES = 400;
// How many blocks are opened in search of the strongest cells: a quarter of a second's work.
const MOST_BLOCKS = 6000;

// How many such heads are kept, and of how many numbers, four bytes each: twelve of 8,192 tokens and a width of 128, but
// three of 32,768.
const MOST_KEPT = 12;
const MOST_NUMBERS_KEPT = 26_000_000;
// The same of heads whose weights came instead, in weights: one of 8,192 tokens has 67 million, two bytes each.
const MOST_WEIGHTS_KEPT = 140_000_000;

/** How many heads like one in a file are kept. @param {{queries: number, keys: number, width?: number}} packed */
export function headsKept({queries, keys, width}) {
  const room = width ? MOST_NUMBERS_KEPT / ((queries + keys) * width) : MOST_WEIGHTS_KEPT / (queries * keys);
  return Math.max(1, Math.min(MOST_KEPT, Math.floor(room)));
}

/** Forget heads, the first ones first, until there is room for the last; it always stays.
 * @param {Map<string, ComputedHead>} heads @param {ComputedHead} last */
export function forgetOldest(heads, last) {
  const sum = (/** @type {"known" | "numbers"} */ what) => [...heads.values()].reduce((all, one) => all + one[what], 0);
  for (const [place, head] of heads) {
    const fits = sum("known") <= MOST_WEIGHTS_KEPT && sum("numbers") <= MOST_NUMBERS_KEPT;
    if (head === last || (heads.size <= MOST_KEPT && fits)) return;
    heads.delete(place);
  }
}

/** One head, with the methods of `Head`. */
export class ComputedHead {
  /** @param {Terms | KnownWeights} terms
   * @param {ArrayLike<number>} sums  of each query's row
   * @param {BlockMap} map @param {MeanMap} means
   * @param {number} most  the largest weight
   * @param {Float64Array} values  the weight that each number stands for */
  constructor(terms, sums, map, means, most, values) {
    this.terms = terms;
    this.sums = sums;
    this.map = map;
    this.means = means;
    this.most = most;
    this.values = values;
    this.levels = values.length - 2;
    this.queries = terms.queries;
    this.keys = terms.keys;
    /** @type {Map<number, {numbers: Uint16Array, blocked: Uint8Array}>} */
    this.squares = new Map();
    /** @type {{columns: Places | null, keys: Places}} */
    this.hidden = {columns: null, keys: new Int32Array(0)};
    /** @type {{rows: Places | null, columns: Places | null, most: number}} */
    this.shown = {rows: null, columns: null, most: 0};
  }

  /** @param {number} query @param {number} key */
  at(query, key) {
    return this.isBlocked(query, key) ? 0 : this.open(query, key);
  }

  /** @param {number} query @param {number} key */
  isBlocked(query, key) {
    return this.terms.open !== null && !this.terms.open.isOpen(query, key);
  }

  /** Whether its weights are computed, not come in steps. */
  get isComputed() {
    return !("weights" in this.terms);
  }

  /** How many weights it holds that are not computed. */
  get known() {
    return "weights" in this.terms ? this.terms.weights.length : 0;
  }

  /** How many numbers it holds that weights are computed from. */
  get numbers() {
    return "weights" in this.terms ? 0 : this.terms.query.length + this.terms.key.length;
  }

  /** The weight of a cell that is not blocked. @param {number} query @param {number} key */
  open(query, key) {
    const {terms} = this;
    if ("weights" in terms) return terms.weights[key * terms.queries + query] / terms.steps;
    const {width, scale, softcap, bias, normalisers, queries} = terms;
    let logit = innerProduct(terms.query, query * width, terms.key, key * width, width) * scale;
    if (softcap !== null) logit = softcap * Math.tanh(logit / softcap);
    if (bias !== null) logit += bias.numbers[bias.along === "key" ? key : key - query + queries - 1];
    return Math.exp(logit - normalisers[query]);
  }

  /** The largest weight among some rows and columns; of many they are all that are shown, and it is looked for once.
   * @param {Places} rows @param {Places} columns */
  maximum(rows, columns) {
    if (rows.length === this.queries && columns.length === this.keys) return this.most;
    if (rows.length * columns.length > MOST_COMPUTED / 16) {
      if (this.shown.rows !== rows || this.shown.columns !== columns)
        this.shown = {rows, columns, most: this.strongest(rows, columns, 1)[0]?.weight ?? 0};
      return this.shown.most;
    }
    return rows.reduce((most, query) => columns.reduce((found, key) => Math.max(found, this.at(query, key)), most), 0);
  }

  /** The sum of a row over some columns. @param {number} query @param {Places} columns */
  sum(query, columns) {
    if (columns.length === this.keys) return this.sums[query];
    if (this.hidden.columns !== columns) {
      const shown = members(columns, this.keys);
      this.hidden = {columns, keys: countUp(this.keys).filter((key) => !shown[key])};
    }
    return Math.max(
      0,
      this.hidden.keys.reduce((sum, key) => sum - this.at(query, key), this.sums[query]),
    );
  }

  /**
   * The heaviest cells among some rows and columns, heaviest first.
   *
   * Of many cells the blocks of the map are opened, those with the largest weights first, until no other can hold one.
   * @param {Places} rows @param {Places} columns @param {number} count
   * @param {(query: number, key: number) => boolean} accepts
   */
  strongest(rows, columns, count, accepts = () => true) {
    const found = new Strongest(count);
    const take = (/** @type {number} */ query, /** @type {number} */ key) => {
      if (accepts(query, key)) found.add(query, key, this.at(query, key));
    };
    if (rows.length * columns.length <= MOST_COMPUTED / 4) {
      for (const query of rows) for (const key of columns) take(query, key);
      return found.sorted();
    }
    const [inRows, inColumns] = [members(rows, this.queries), members(columns, this.keys)];
    let opened = 0;
    for (const block of this.map.byWeight()) {
      const {top, left, bottom, right, bound} = this.map.block(block);
      if (found.least >= bound || opened++ === MOST_BLOCKS) break;
      for (let query = top; query < Math.min(bottom, this.queries); query++)
        for (let key = left; inRows[query] && key < Math.min(right, this.keys); key++)
          if (inColumns[key]) take(query, key);
    }
    return found.sorted();
  }

  /** The weight under each pixel as whole numbers: each cell by itself, or of many cells the largest of each block.
   * @param {Places} rows @param {Places} columns @param {number} width @param {number} height */
  sample(rows, columns, width, height) {
    if (rows.length * columns.length > MOST_COMPUTED) return this.map.sample(rows, columns, width, height);
    const pattern = {
      weights: new Uint16Array(rows.length * columns.length),
      blocked: new Uint8Array(rows.length * columns.length),
      queries: rows.length,
    };
    columns.forEach((key, across) =>
      rows.forEach((query, down) => {
        const {numbers, blocked} = this.square(Math.floor(query / SQUARE), Math.floor(key / SQUARE));
        const cell = (key % SQUARE) * SQUARE + (query % SQUARE);
        pattern.weights[across * rows.length + down] = numbers[cell];
        pattern.blocked[across * rows.length + down] = blocked[cell];
      }),
    );
    return sample(pattern, countUp(rows.length), countUp(columns.length), width, height);
  }

  /** A square of cells, computed once: numbers of intervals and blocked cells, key by key.
   * @param {number} row @param {number} column */
  square(row, column) {
    const place = row * 65536 + column;
    let found = this.squares.get(place);
    if (found === undefined) {
      found = this.computeSquare(row * SQUARE, column * SQUARE);
      if (this.squares.size >= MOST_SQUARES) this.squares.delete(Number(this.squares.keys().next().value));
      this.squares.set(place, found);
    }
    return found;
  }

  /** @param {number} top @param {number} left */
  computeSquare(top, left) {
    const [numbers, blocked] = [new Uint16Array(SQUARE * SQUARE), new Uint8Array(SQUARE * SQUARE).fill(1)];
    const open = new Uint8Array(Math.min(SQUARE, this.keys - left)).fill(1);
    for (let query = top; query < Math.min(top + SQUARE, this.queries); query++) {
      this.terms.open?.mark(query, left, open);
      for (let across = 0; across < open.length; across++) {
        if (!open[across]) continue;
        const cell = across * SQUARE + query - top;
        blocked[cell] = 0;
        numbers[cell] = numberOf(this.open(query, left + across), this.levels);
      }
    }
    return {numbers, blocked};
  }
}

/**
 * @param {Float32Array} one @param {number} from @param {Float32Array} other @param {number} to @param {number} width
 */
function innerProduct(one, from, other, to, width) {
  let [sum, odd, i] = [0, 0, 0];
  for (; i + 3 < width; i += 4) {
    sum += one[from + i] * other[to + i] + one[from + i + 2] * other[to + i + 2];
    odd += one[from + i + 1] * other[to + i + 1] + one[from + i + 3] * other[to + i + 3];
  }
  for (; i < width; i++) sum += one[from + i] * other[to + i];
  return sum + odd;
}

/** @param {number} count */
function countUp(count) {
  return Int32Array.from({length: count}, (_, place) => place);
}

/** 1 for each position that is among some places. @param {Places} places @param {number} count */
function members(places, count) {
  const found = new Uint8Array(count);
  for (const place of places) found[place] = 1;
  return found;
}
