// A head of a long text as a map: of each block of neighbouring cells the largest weight.

/** @import {Places} from "./head.js" */

const ALL_BLOCKED = 0xffff;

/** The blocks of one head. */
export class BlockMap {
  /**
   * @param {Uint16Array} numbers  of intervals (column of blocks, row of blocks)
   * @param {Uint8Array | null} blocked  1 where all cells of a block are; null where none is
   * @param {[number, number]} size  rows and columns of a block
   * @param {number} down  how many rows of blocks there are
   * @param {number} levels  intervals between 0 and 1
   */
  constructor(numbers, blocked, size, down, levels) {
    this.numbers = numbers;
    this.blocked = blocked;
    this.size = size;
    this.down = down;
    this.levels = levels;
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

  /**
   * Where a block lies, and what none of its weights exceeds.
   * @param {number} block
   */
  block(block) {
    const {numbers, size, down, levels} = this;
    const [top, left] = [(block % down) * size[0], Math.floor(block / down) * size[1]];
    return {top, left, bottom: top + size[0], right: left + size[1], bound: numbers[block] / levels};
  }

  /**
   * The largest weight under each pixel as whole numbers.
   * @param {Places} rows
   * @param {Places} columns
   * @param {number} width
   * @param {number} height
   */
  sample(rows, columns, width, height) {
    const {numbers, blocked, size, down} = this;
    const [tops, lefts] = [blocksUnder(rows, size[0], height), blocksUnder(columns, size[1], width)];
    const pixels = new Uint16Array(width * height);
    for (let x = 0; x < width; x++)
      for (let y = 0; y < height; y++) {
        let most = -1;
        for (let column = lefts[2 * x]; column <= lefts[2 * x + 1]; column++)
          for (let row = tops[2 * y]; row <= tops[2 * y + 1]; row++)
            if (!blocked?.[column * down + row]) most = Math.max(most, numbers[column * down + row]);
        pixels[y * width + x] = most < 0 ? ALL_BLOCKED : most;
      }
    return pixels;
  }
}

/**
 * The first and the last block under each pixel.
 * @param {Places} places
 * @param {number} size
 * @param {number} pixels
 */
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
