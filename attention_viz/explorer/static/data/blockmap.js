// A head of a long text as a map: of each block of neighbouring cells the largest weight, or their mean.

import {numberOf, weightValues} from "./payload.js";
import {codeOf, codeValues} from "./thumbnail.js";

/** @import {Places} from "./head.js"
 * @import {OpenKeys} from "./pattern.js"
 * @import {Coding} from "./thumbnail.js" */

/** What there is in a block: its largest weight, the sum of its weights, and how many of its cells are open.
 * @typedef {{most: number, sum: number, open: number}} Content */

export const ALL_BLOCKED = 0xffff;

/** The blocks of one head, each with its largest weight. */
export class BlockMap {
  /** @param {Uint16Array} numbers  of intervals (column of blocks, row of blocks)
   * @param {Uint8Array | null} blocked  1 where all cells of a block are; null where none is
   * @param {[number, number]} size  rows and columns of a block
   * @param {number} down  how many rows of blocks there are
   * @param {number} levels  intervals between 0 and 1 */
  constructor(numbers, blocked, size, down, levels) {
    this.numbers = numbers;
    this.blocked = blocked;
    this.size = size;
    this.down = down;
    this.levels = levels;
  }

  /** The weight that each number stands for. */
  get values() {
    return weightValues(this);
  }

  /** Whether no part of a block has a larger number than the block itself. */
  get boundsParts() {
    return true;
  }

  /** A map of other blocks whose numbers mean the same.
   * @param {Uint16Array} numbers @param {Uint8Array | null} blocked @param {[number, number]} size @param {number} down
   * @returns {BlockMap} */
  like(numbers, blocked, size, down) {
    return new BlockMap(numbers, blocked, size, down, this.levels);
  }

  /** The number of a block. @param {Content} content */
  encode({most}) {
    return numberOf(most, this.levels);
  }

  /** The blocks that hold anything, by number, the one with the largest weight first. */
  byWeight() {
    const {numbers, levels} = this;
    const starts = new Uint32Array(levels + 3);
    for (const number of numbers) starts[number + 1]++;
    for (let number = 1; number < starts.length; number++) starts[number] += starts[number - 1];
    const nothing = starts[1];
    const order = new Uint32Array(numbers.length);
    numbers.forEach((number, block) => (order[starts[number]++] = block));
    return order.subarray(nothing).reverse();
  }

  /** Where a block lies, and what none of its weights exceeds. @param {number} block */
  block(block) {
    const {numbers, size, down, levels} = this;
    const [top, left] = [(block % down) * size[0], Math.floor(block / down) * size[1]];
    return {top, left, bottom: top + size[0], right: left + size[1], bound: numbers[block] / levels};
  }

  /** The weight under each pixel as whole numbers.
   * @param {Places} rows @param {Places} columns @param {number} width @param {number} height */
  sample(rows, columns, width, height) {
    const [tops, lefts] = [blocksUnder(rows, this.size[0], height), blocksUnder(columns, this.size[1], width)];
    const pixels = new Uint16Array(width * height);
    for (let x = 0; x < width; x++)
      for (let y = 0; y < height; y++)
        pixels[y * width + x] = this.pooled(tops[2 * y], tops[2 * y + 1], lefts[2 * x], lefts[2 * x + 1]);
    return pixels;
  }

  /** The number of all blocks together that some rows and columns lie in.
   * @param {Places} rows  in order
   * @param {Places} columns */
  over(rows, columns) {
    const [tall, wide] = this.size;
    return this.pooled(
      Math.floor(rows[0] / tall),
      Math.floor(rows[rows.length - 1] / tall),
      Math.floor(columns[0] / wide),
      Math.floor(columns[columns.length - 1] / wide),
    );
  }

  /** The largest number of some blocks.
   * @param {number} top
   * @param {number} bottom  the last row of them
   * @param {number} left @param {number} right */
  pooled(top, bottom, left, right) {
    const {numbers, blocked, down} = this;
    let most = -1;
    for (let column = left; column <= right; column++)
      for (let row = top; row <= bottom; row++)
        if (!blocked?.[column * down + row]) most = Math.max(most, numbers[column * down + row]);
    return most < 0 ? ALL_BLOCKED : most;
  }
}

/** The blocks of one head, each with the mean of its open cells, in steps of the logarithm. */
export class MeanMap extends BlockMap {
  /** @param {Uint16Array} numbers  codes (column of blocks, row of blocks)
   * @param {Uint8Array | null} blocked @param {[number, number]} size @param {number} down @param {Coding} coding */
  constructor(numbers, blocked, size, down, coding) {
    super(numbers, blocked, size, down, coding.codes);
    this.coding = coding;
    this.weights = codeValues(coding);
  }

  /** @override */
  get values() {
    return this.weights;
  }

  /** @override */
  get boundsParts() {
    return false;
  }

  /** @override
   * @param {Uint16Array} numbers
   * @param {Uint8Array | null} blocked
   * @param {[number, number]} size
   * @param {number} down */
  like(numbers, blocked, size, down) {
    return new MeanMap(numbers, blocked, size, down, this.coding);
  }

  /** @override
   * @param {Content} content */
  encode({sum, open}) {
    return codeOf(open ? sum / open : 0, this.coding);
  }

  /** The mean of some blocks.
   * @override
   * @param {number} top
   * @param {number} bottom
   * @param {number} left
   * @param {number} right */
  pooled(top, bottom, left, right) {
    const {numbers, blocked, down, weights} = this;
    let [sum, open, last] = [0, 0, 0];
    for (let column = left; column <= right; column++)
      for (let row = top; row <= bottom; row++) {
        const block = column * down + row;
        if (blocked?.[block]) continue;
        [open, last] = [open + 1, numbers[block]];
        sum += weights[last];
      }
    if (open < 2) return open ? last : ALL_BLOCKED;
    return codeOf(sum / open, this.coding);
  }
}

/**
 * A head while its numbers are on their way: its maps, which take a twentieth of its bytes, and what is known of its rows
 * and of what it blocks.
 */
export class HeadMap {
  /** @param {BlockMap} map @param {MeanMap} means
   * @param {{queries: number, keys: number, most: number}} entry  most: the largest weight
   * @param {Float32Array} sums  of each row
   * @param {OpenKeys | null} open  null where nothing is blocked */
  constructor(map, means, {queries, keys, most}, sums, open) {
    this.map = map;
    this.means = means;
    this.counts = {queries, keys};
    this.most = most;
    this.sums = sums;
    this.open = open;
  }

  /** The weight that each number stands for. */
  get values() {
    return this.map.values;
  }

  /** Whether rows and columns are all that there are: of some of them the map doesn't know what is largest.
   * @param {Places} rows @param {Places} columns */
  shows(rows, columns) {
    return rows.length === this.counts.queries && columns.length === this.counts.keys;
  }

  /** The largest weight. */
  maximum() {
    return this.most;
  }

  /** The number under each pixel.
   * @param {Places} rows @param {Places} columns @param {number} width @param {number} height */
  sample(rows, columns, width, height) {
    return this.map.sample(rows, columns, width, height);
  }
}

/** The first and the last block under each pixel. @param {Places} places @param {number} size @param {number} pixels */
function blocksUnder(places, size, pixels) {
  const found = new Int32Array(2 * pixels);
  for (let at = 0; at < pixels; at++) {
    const first = Math.floor((at * places.length) / pixels);
    const last = Math.max(first, Math.ceil(((at + 1) * places.length) / pixels) - 1);
    found[2 * at] = Math.floor(places[first] / size);
    found[2 * at + 1] = Math.floor(places[last] / size);
  }
  return found;
}
