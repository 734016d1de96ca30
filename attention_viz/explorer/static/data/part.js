// A part of a long text's head in blocks of its own, and its whole in blocks without hidden tokens; both computed from
// query and key, a block at a time, so that a page can draw in between.

import {ALL_BLOCKED} from "./blockmap.js";

/**
 * @import {BlockMap} from "./blockmap.js"
 * @import {ComputedHead} from "./computed.js"
 * @import {Places} from "./head.js"
 */

// Blocks along a side, at most.
const SIDE = 512;

/** Some rows and columns of a head, in blocks of them alone. */
export class Part {
  /**
   * @param {ComputedHead} head
   * @param {BlockMap} whole  the map of the whole, of the same kind: it is drawn where blocks aren't computed yet
   * @param {Places} rows @param {Places} columns
   */
  constructor(head, whole, rows, columns) {
    const [tall, wide] = [Math.ceil(rows.length / SIDE), Math.ceil(columns.length / SIDE)];
    this.head = head;
    this.whole = whole;
    this.rows = rows;
    this.columns = columns;
    this.down = Math.ceil(rows.length / tall);
    this.across = Math.ceil(columns.length / wide);
    this.own = emptyMap(whole, [tall, wide], this.down, this.across);
    // Where each row and column of the part lies in it: its blocks are of places, not of tokens.
    this.places = {rows: rows.map((_, place) => place), columns: columns.map((_, place) => place)};
    this.ready = 0; // rows of blocks
  }

  get size() {
    return this.own.size;
  }

  get done() {
    return this.ready === this.down;
  }

  get values() {
    return this.whole.values;
  }

  /** Compute all blocks, a step each, from the top. */
  steps() {
    return computePart(this);
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
export class WithoutHidden {
  /**
   * @param {ComputedHead} head @param {BlockMap} whole
   * @param {Places} rows  that are shown
   * @param {Places} columns
   */
  constructor(head, whole, rows, columns) {
    const {size, down, numbers} = whole;
    this.head = head;
    this.whole = whole;
    this.rows = rows;
    this.columns = columns;
    this.own = whole.like(numbers.slice(), whole.blocked?.slice() ?? new Uint8Array(numbers.length), size, down);
    this.done = false;
  }

  get size() {
    return this.own.size;
  }

  get values() {
    return this.whole.values;
  }

  /** Compute the blocks that hold anything hidden, a step each. */
  steps() {
    return computeWithout(this);
  }

  /** The weight under each pixel as whole numbers. @param {number} width @param {number} height */
  sample(width, height) {
    return this.own.sample(this.rows, this.columns, width, height);
  }
}

/** @param {Part} part */
function* computePart(part) {
  const {head, whole, own, down, across, rows, columns} = part;
  const [tall, wide] = own.size;
  for (; part.ready < down; part.ready++)
    for (let column = 0; column < across; column++) {
      const queries = rows.subarray(part.ready * tall, (part.ready + 1) * tall);
      const keys = columns.subarray(column * wide, (column + 1) * wide);
      put(own, column * down + part.ready, numberOfBlock(head, whole, queries, keys));
      yield;
    }
}

/** @param {WithoutHidden} without */
function* computeWithout(without) {
  const {head, whole, own} = without;
  const {down, size, numbers} = whole;
  const rows = inBlocksOf(without.rows, size[0], down);
  const columns = inBlocksOf(without.columns, size[1], numbers.length / down);
  for (const [column, keys] of columns.entries())
    for (const [row, queries] of rows.entries()) {
      const {top, bottom, left, right} = whole.block(column * down + row);
      const [tall, wide] = [Math.min(bottom, head.queries) - top, Math.min(right, head.keys) - left];
      if (queries.length === tall && keys.length === wide) continue;
      put(own, column * down + row, numberOfBlock(head, whole, queries, keys));
      yield;
    }
  without.done = true;
}

/**
 * The number of a block of some rows and columns.
 * @param {ComputedHead} head @param {BlockMap} whole @param {Places} rows @param {Places} columns
 */
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

/** @param {BlockMap} map @param {[number, number]} size @param {number} down @param {number} across */
function emptyMap(map, size, down, across) {
  return map.like(new Uint16Array(down * across), new Uint8Array(down * across), size, down);
}

/** @param {BlockMap} map @param {number} block @param {number} number */
function put({numbers, blocked}, block, number) {
  numbers[block] = number === ALL_BLOCKED ? 0 : number;
  if (blocked) blocked[block] = Number(number === ALL_BLOCKED);
}

/**
 * Which places lie in each block.
 * @param {Places} places
 * @param {number} length  of a block
 * @param {number} blocks
 */
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
