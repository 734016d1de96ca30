// Which keys each query may look at, as runs: of a long text a mark for each cell would be as large as the weights.

import {readMask, readPlane} from "./payload.js";

/** @import {PackedMask} from "./payload.js" */

/** The open cells of a head. */
export class OpenKeys {
  /** @param {number} queries @param {number} keys
   * @param {ArrayLike<number>} starts  at which run each row begins, and how many runs there are
   * @param {ArrayLike<number>} edges  of each run its first key and the one after its last */
  constructor(queries, keys, starts, edges) {
    this.queries = queries;
    this.keys = keys;
    this.starts = starts;
    this.edges = edges;
  }

  /** @param {number} query @param {number} key */
  isOpen(query, key) {
    let [low, high] = [this.starts[query], this.starts[query + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.edges[2 * middle + 1] <= key) low = middle + 1;
      else high = middle;
    }
    return low < this.starts[query + 1] && this.edges[2 * low] <= key;
  }

  /** Mark the open cells of one row: 1 in `marks`, which has a place for each key from `first` on.
   * @param {number} query @param {number} first @param {Uint8Array} marks */
  mark(query, first, marks) {
    marks.fill(0);
    for (let run = this.starts[query]; run < this.starts[query + 1]; run++) {
      const [start, end] = [this.edges[2 * run] - first, this.edges[2 * run + 1] - first];
      if (end > 0 && start < marks.length) marks.fill(1, Math.max(0, start), Math.min(marks.length, end));
    }
  }

  /** Which blocks have no open cell, (column of blocks, row of blocks): 1 where all is blocked.
   * @param {[number, number]} size  rows and columns of a block */
  blockedBlocks([tall, wide]) {
    const [down, across] = [Math.ceil(this.queries / tall), Math.ceil(this.keys / wide)];
    const blocked = new Uint8Array(down * across).fill(1);
    for (let query = 0; query < this.queries; query++) {
      const row = Math.floor(query / tall);
      for (let run = this.starts[query]; run < this.starts[query + 1]; run++) {
        const last = Math.floor((this.edges[2 * run + 1] - 1) / wide);
        for (let column = Math.floor(this.edges[2 * run] / wide); column <= last; column++)
          blocked[column * down + row] = 0;
      }
    }
    return blocked;
  }
}

/** A pattern as it was packed; null stands for nothing blocked.
 * @param {{body: Uint8Array}} payload @param {PackedMask} mask */
export async function readOpenKeys(payload, mask) {
  const {queries, keys} = mask;
  if (mask.kind === "causal") {
    const starts = Int32Array.from({length: queries + 1}, (_, query) => query);
    const edges = new Int32Array(2 * queries);
    for (let query = 0; query < queries; query++) edges[2 * query + 1] = Math.max(0, query + 1 + keys - queries);
    return new OpenKeys(queries, keys, starts, edges);
  }
  if (mask.kind === "bits") return runsOf(await readMask(payload, mask), queries, keys);
  const plane = await readPlane(payload, mask.at);
  const runs = new Int32Array(plane.buffer, plane.byteOffset, plane.length / 4);
  return new OpenKeys(queries, keys, runs.subarray(0, queries + 1), runs.subarray(queries + 1));
}

/** @param {Uint8Array} blocked  (key, query)
 * @param {number} queries @param {number} keys */
function runsOf(blocked, queries, keys) {
  const [starts, edges] = [[0], /** @type {number[]} */ ([])];
  for (let query = 0; query < queries; query++) {
    let open = false;
    for (let key = 0; key <= keys; key++) {
      const next = key < keys && !blocked[key * queries + query];
      if (next !== open) edges.push(key);
      open = next;
    }
    starts.push(edges.length / 2);
  }
  return new OpenKeys(queries, keys, starts, edges);
}
