// A part of a long text's head in blocks of its own, and its whole in blocks without hidden tokens; both computed from
// query and key, a block at a time, so that a page can draw in between.

import {ALL_BLOCKED} from "./blockmap.js";

/** @import {BlockMap} from "./blockmap.js"
 * @import {ComputedHead} from "./computed.js"
 * @import {Places} from "./head.js" */

// Blocks along a side, at most.
const SIDE = 512;

/** Blocks of some rows and columns of a head, computed a step at a time. */
class Blocks {
  /** @param {ComputedHead} head
   * @param {BlockMap} whole  the map of the whole, of the same kind: it is drawn where blocks aren't computed yet
   * @param {Places} rows  that are shown
   * @param {Places} columns @param {BlockMap} own */
  constructor(head, whole, rows, columns, own) {
    this.head = head;
    this.whole = whole;
    this.rows = rows;
    this.columns = columns;
    this.own = own;
    this.done = false;
  }

  get size() {
    return this.own.size;
  }

  get values() {
    return this.whole.values;
  }

  /** Compute a block of these rows and columns. @param {number} block @param {Places} rows @param {Places} columns */
  compute(block, rows, columns) {
    const number = numberOfBlock(this.head, this.whole, rows, columns);
    this.own.numbers[block] = number === ALL_BLOCKED ? 0 : number;
    if (this.own.blocked) this.own.blocked[block] = Number(number === ALL_BLOCKED);
  }
}

/** Some rows and columns of a head, in blocks of them alone. */
export class Part extends Blocks {
  /** @param {ComputedHead} head @param {BlockMap} whole @param {Places} rows @param {Places} columns */
  constructor(head, whole, rows, columns) {
    const [tall, wide] = [Math.ceil(rows.length / SIDE), Math.ceil(columns.length / SIDE)];
    const [down, across] = [Math.ceil(rows.length / tall), Math.ceil(columns.length / wide)];
    const count = down * across;
    const own = whole.like(new Uint16Array(count), new Uint8Array(count), [tall, wide], down);
    super(head, whole, rows, columns, own);
    this.down = down;
    this.across = across;
    // Where each row and column of the part lies in it: its blocks are of places, not of tokens.
    this.places = {rows: rows.map((_, place) => place), columns: columns.map((_, place) => place)};
    this.ready = 0; // rows of blocks
  }

  /** Compute all blocks, a step each, from the top. */
  steps() {
    return stepsOfPart(this);
  }

  /** The weight under each pixel as whole numbers. @param {number} width @param {number} height */
  sample(width, height) {
    const {rows, columns, places, ready, size} = this;
    if (this.done) return this.own.sample(places.rows, places.columns, width, height);
    const pixels = this.whole.sample(rows, columns, width, height);
    const computed = Math.floor((ready * size[0] * height) / rows.length);
    if (computed > 0) {
      const own = this.own.sample(places.rows, places.columns, width, height);
      pixels.set(own.subarray(0, computed * width));
    }
    return pixels;
  }
}

/** The whole of a head without some of its rows and columns: blocks that hold any of those are computed anew. */
export class WithoutHidden extends Blocks {
  /** @param {ComputedHead} head @param {BlockMap} whole @param {Places} rows @param {Places} columns */
  constructor(head, whole, rows, columns) {
    const {size, down, numbers, blocked} = whole;
    const own = whole.like(numbers.slice(), blocked?.slice() ?? new Uint8Array(numbers.length), size, down);
    super(head, whole, rows, columns, own);
  }

  /** Compute the blocks that hold anything hidden, a step each. */
  steps() {
    return stepsWithout(this);
  }

  /** The weight under each pixel as whole numbers. @param {number} width @param {number} height */
  sample(width, height) {
    return this.own.sample(this.rows, this.columns, width, height);
  }
}

/** @param {Part} part */
function* stepsOfPart(part) {
  const {own, down, across, rows, columns} = part;
  const [tall, wide] = own.size;
  for (; part.ready < down; part.ready++)
    for (let column = 0; column < across; column++) {
      const queries = rows.subarray(part.ready * tall, (part.ready + 1) * tall);
      part.compute(column * down + part.ready, queries, columns.subarray(column * wide, (column + 1) * wide));
      yield;
    }
  part.done = true;
}

/** @param {WithoutHidden} without */
function* stepsWithout(without) {
  const {head, whole} = without;
  const {down, size, numbers} = whole;
  const rows = inBlocksOf(without.rows, size[0], down);
  const columns = inBlocksOf(without.columns, size[1], numbers.length / down);
  for (const [column, keys] of columns.entries())
    for (const [row, queries] of rows.entries()) {
      const {top, bottom, left, right} = whole.block(column * down + row);
      const [tall, wide] = [Math.min(bottom, head.queries) - top, Math.min(right, head.keys) - left];
      if (queries.length === tall && keys.length === wide) continue;
      without.compute(column * down + row, queries, keys);
      yield;
    }
  without.done = true;
}

/** The number of a block of some rows and columns.
 * @param {ComputedHead} head @param {BlockMap} whole @param {Places} rows @param {Places} columns */
function numberOfBlock(head, whole, rows, columns) {
  if (rows.length === 0 || columns.length === 0) return ALL_BLOCKED;
  const before = whole.over(rows, columns);
  if (before === ALL_BLOCKED) return before;
  // Where the largest weight of all is too small to be told from 0, so are those of its parts.
  if (before === 0 && whole.boundsParts) return anyOpen(head, rows, columns) ? before : ALL_BLOCKED;
  let [most, sum, open] = [0, 0, 0];
  for (const query of rows)
    for (const key of columns) {
      if (head.isBlocked(query, key)) continue;
      const weight = head.open(query, key);
      [open, sum] = [open + 1, sum + weight];
      if (weight > most) most = weight;
    }
  return open ? whole.encode({most, sum, open}) : ALL_BLOCKED;
}

/** @param {ComputedHead} head @param {Places} rows @param {Places} columns */
function anyOpen(head, rows, columns) {
  return rows.some((query) => columns.some((key) => !head.isBlocked(query, key)));
}

/** Which places lie in each block.
 * @param {Places} places
 * @param {number} length  of a block
 * @param {number} blocks */
function inBlocksOf(places, length, blocks) {
  let start = 0;
  return Array.from({length: blocks}, (_, block) => {
    let end = start;
    while (end < places.length && places[end] < (block + 1) * length) end++;
    const inside = places.subarray(start, end);
    start = end;
    return inside;
  });
}
