// One head of a layer without a softmax: signed weights as they were computed, and what arrives by them.

import {readPlane} from "./payload.js";
import {sampleBy} from "./raster.js";
import {Strongest} from "./strongest.js";

/** @import {Places} from "./head.js"
 * @import {Place} from "./payload.js" */

/** What Python sends of a layer without a softmax, as `add_mixer` in mixers.py writes it.
 * @typedef {object} PackedMixing
 * @property {string} kind  its rule, such as "gated delta"
 * @property {"head" | "channel"} per  whose matrices there are
 * @property {number} channels  how many; 0 where there are heads
 * @property {number} convolved  over how many tokens a convolution mixed the values before; 0 where none did
 * @property {Place | null} cells  (head, query, key); null where the text is too long to be drawn
 * @property {PackedSmall} [small]  where a host hands over heads one by one
 * @property {Place} [lengths]  of each value (head, key), where the cells are weights
 * @property {Place} [skip]  (head, query), what the diagonal has beside the layer's memory */

/** Small pictures of a layer's heads, from some of their rows: codes (head, row, column), and each head's largest size.
 * @typedef {{at: Place, most: number[]}} PackedCodes
 * @typedef {{side: [number, number], signs: PackedCodes, arrivals: PackedCodes}} PackedSmall */

/** What stands before one channel of a layer, as `pack_channel` in mixers.py writes it.
 * @typedef {Pick<PackedMixing, "cells" | "lengths" | "skip"> & {channel: {stream: string, layer: number, head: number}}}
 *   ChannelHeader */

// Colours go by the logarithm of a size, from the largest of the matrix down so many decades, in so many steps.
export const DECADES = 4;
const SIGNED_STEPS = 2000;
const NOTHING_OPEN = 0xffff;

/** How a weight lies between the largest minus (-1), nothing (0) and the largest plus (1), by the logarithm of its size.
 * @param {number} weight @param {number} most  the largest size */
export function signedPlace(weight, most) {
  const size = Math.abs(weight);
  if (!(size > 0) || !(most > 0)) return 0;
  return Math.sign(weight) * Math.max(0, 1 + Math.log10(Math.min(1, size / most)) / DECADES);
}

/** A head whose weights carry values to a query, or, below 0, take them away. */
export class MixedHead {
  /** @param {Float32Array} cells  (query, key)
   * @param {Uint8Array | null} blocked  1 where nothing can arrive, key by key
   * @param {number} queries @param {number} keys
   * @param {{lengths?: Float32Array | null, signed?: boolean, skip?: Float32Array | null}} more  lengths: of each key's value, null
   *   where the cells are what arrives already; skip: what the diagonal has, row by row, beside the layer's memory */
  constructor(cells, blocked, queries, keys, {lengths = null, signed = true, skip = null} = {}) {
    this.cells = cells;
    this.blocked = blocked;
    this.queries = queries;
    this.keys = keys;
    this.lengths = lengths;
    this.signed = signed;
    this.skip = skip;
    this.most = cells.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
    /** @type {MixedHead | null} */
    this.second = null;
  }

  /** The scale of its colours. @returns {"signed" | "arrived"} */
  get scale() {
    return this.signed ? "signed" : "arrived";
  }

  /** The same head by what arrives: the length of each value times the size of its weight. @returns {MixedHead} */
  get arrived() {
    const {lengths, keys} = this;
    if (lengths === null) return this;
    this.second ??= new MixedHead(
      this.cells.map((weight, at) => Math.abs(weight) * lengths[at % keys]),
      this.blocked,
      this.queries,
      keys,
      {signed: false, skip: this.skip},
    );
    return this.second;
  }

  /** The weight that each number under a pixel stands for. */
  get values() {
    return Float64Array.from({length: 2 * SIGNED_STEPS + 1}, (_, number) => {
      const place = (number - SIGNED_STEPS) / SIGNED_STEPS;
      return place === 0 ? 0 : Math.sign(place) * this.most * 10 ** (DECADES * (Math.abs(place) - 1));
    });
  }

  /** @param {number} query @param {number} key */
  at(query, key) {
    return this.cells[query * this.keys + key];
  }

  /** @param {number} query @param {number} key */
  isBlocked(query, key) {
    return this.blocked !== null && this.blocked[key * this.queries + query] === 1;
  }

  /** The largest size in the matrix: its deepest colour, whichever part of it is in sight. */
  maximum() {
    return this.most;
  }

  /** What a row's weights come to, with their signs. @param {number} query @param {Places} columns */
  sum(query, columns) {
    return columns.reduce((sum, key) => sum + this.at(query, key), 0);
  }

  /** What the sizes of a row's weights come to. @param {number} query @param {Places} columns */
  size(query, columns) {
    return columns.reduce((sum, key) => sum + Math.abs(this.at(query, key)), 0);
  }

  /** The number under each pixel: of several cells that of the largest size, with its sign.
   * @param {Places} rows @param {Places} columns @param {number} width @param {number} height */
  sample(rows, columns, width, height) {
    const pool = (/** @type {number[]} */ [top, bottom, left, right]) => {
      let [found, open] = [0, false];
      for (let x = left; x < right; x++)
        for (let y = top; y < bottom; y++) {
          if (this.isBlocked(rows[y], columns[x])) continue;
          const weight = this.at(rows[y], columns[x]);
          open = true;
          if (Math.abs(weight) > Math.abs(found)) found = weight;
        }
      return open ? SIGNED_STEPS + Math.round(SIGNED_STEPS * signedPlace(found, this.most)) : NOTHING_OPEN;
    };
    return sampleBy(pool, rows.length, columns.length, width, height);
  }

  /** The cells of the largest size among some rows and columns, the largest first; their weights have their signs.
   * @param {Places} rows @param {Places} columns @param {number} count
   * @param {(query: number, key: number) => boolean} accepts */
  strongest(rows, columns, count, accepts = () => true) {
    const found = new Strongest(count);
    for (const key of columns)
      for (const query of rows) {
        const size = Math.abs(this.at(query, key));
        if (size > 0 && accepts(query, key)) found.add(query, key, size);
      }
    return found.sorted().map(({query, key}) => ({query, key, weight: this.at(query, key)}));
  }
}

/** What happens to a key's value at a query, in words with a number.
 * @param {MixedHead} head @param {number} query @param {number} key */
export function carried(head, query, key) {
  const weight = head.at(query, key);
  if (!head.signed) return `arrives with length ${significant(weight)}`;
  return weight < 0 ? `takes away ${significant(-weight)}` : `carries ${significant(weight)}`;
}

/** How much of a row's size a cell has. @param {MixedHead} head @param {number} query @param {number} key
 * @param {Places} columns */
export function shareOfSize(head, query, key, columns) {
  const all = head.size(query, columns);
  return partOfSize(all > 0 ? Math.abs(head.at(query, key)) / all : 0);
}

/** A weight's size among its row's, from 0 to 1, in words. @param {number} share */
export function partOfSize(share) {
  const text = share > 0 && share < 0.01 ? "<1" : Math.round(100 * share);
  return `${text}\u202f% of the row\u2019s size`;
}

/** A row's sum with signs, and that of its sizes. @param {MixedHead} head @param {number} query @param {Places} columns */
export function rowSums(head, query, columns) {
  const size = significant(head.size(query, columns));
  return head.signed
    ? `\u03a3 ${significant(head.sum(query, columns))} \u00b7 \u03a3|\u00b7| ${size}`
    : `\u03a3 of lengths ${size}`;
}

/** A layer's heads; none where they aren't drawn.
 * @param {{body: Uint8Array}} payload @param {Pick<PackedMixing, "cells" | "lengths" | "skip"> & {heads: number}} layer @param {(Uint8Array)[]} masks
 * @param {number} queries @param {number} keys */
export async function readMixed(payload, {cells, lengths, skip, heads}, masks, queries, keys) {
  const read = async (/** @type {Place | null | undefined} */ place) =>
    place ? new Float32Array((await readPlane(payload, place)).buffer) : null;
  const [all, long, beside] = await Promise.all([cells, lengths, skip].map(read));
  if (all === null) return [];
  return Array.from(
    {length: heads},
    (_, head) =>
      new MixedHead(
        all.subarray(head * queries * keys, (head + 1) * queries * keys),
        masks[masks.length > 1 ? head : 0] ?? null,
        queries,
        keys,
        {
          lengths: long?.subarray(head * keys, (head + 1) * keys) ?? null,
          signed: long !== null,
          skip: beside?.subarray(head * queries, (head + 1) * queries) ?? null,
        },
      ),
  );
}

/** A head in small, until a host hands it over: from some of its rows, and of each cell's keys the largest size. */
export class SmallMixedHead extends MixedHead {
  /** @param {Int8Array} codes  (row, column): 127 for the largest size, with a sign; -128 where nothing can arrive
   * @param {number} most  that size @param {[number, number]} side @param {Int8Array | null} arrivals
   * @param {number} mostArriving */
  constructor(codes, most, [down, across], arrivals, mostArriving) {
    const cells = Float32Array.from(
      codes,
      (code) => Math.sign(code) * most * 10 ** (DECADES * (Math.abs(code) / 127 - 1)),
    );
    const blocked = Uint8Array.from(codes, (_, at) =>
      Number(codes[(at % down) * across + Math.floor(at / down)] === -128),
    );
    blocked.forEach((shut, at) => {
      if (shut) cells[(at % down) * across + Math.floor(at / down)] = 0;
    });
    super(cells, blocked, down, across, {signed: arrivals !== null});
    this.small = arrivals && new SmallMixedHead(arrivals, mostArriving, [down, across], null, 0);
  }

  /** @override @returns {MixedHead} */
  get arrived() {
    return this.small ?? this;
  }

  /** All of the picture: it has no columns to leave out. @override @param {Places} _rows @param {Places} _columns
   * @param {number} width @param {number} height */
  sample(_rows, _columns, width, height) {
    const all = (/** @type {number} */ count) => Int32Array.from({length: count}, (_, place) => place);
    return super.sample(all(this.queries), all(this.keys), width, height);
  }
}

/** A layer's heads in small. @param {{body: Uint8Array}} payload @param {PackedSmall} small */
export async function readSmall(payload, {side, signs, arrivals}) {
  const [codes, arriving] = await Promise.all([signs, arrivals].map(({at}) => readPlane(payload, at)));
  const size = side[0] * side[1];
  const of = (/** @type {Uint8Array} */ plane, /** @type {number} */ head) =>
    new Int8Array(plane.buffer, plane.byteOffset + head * size, size);
  return signs.most.map(
    (most, head) => new SmallMixedHead(of(codes, head), most, side, of(arriving, head), arrivals.most[head]),
  );
}

/** Three significant digits, the last ones kept; very small and large numbers with a power of ten.
 * @param {number} weight */
export function significant(weight) {
  const size = Math.abs(weight);
  const sign = weight < 0 ? "\u2212" : "";
  if (size === 0) return "0";
  const [digits, power] = size.toExponential(2).split("e");
  if (Number(power) >= -4 && Number(power) < 5)
    return sign + Number(`${digits}e${power}`).toFixed(Math.max(0, 2 - Number(power)));
  const raised = [...String(Number(power))].map((one) => (one === "-" ? "\u207b" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(one)])).join("");
  return `${sign}${digits} \u00d7 10${raised}`;
}
