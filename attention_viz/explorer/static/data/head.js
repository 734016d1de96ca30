// One head of which all weights are there.

import {numbersAt} from "./payload.js";
import {sample} from "./raster.js";
import {Strongest} from "./strongest.js";

/** @import {Place} from "./payload.js" */

/** Positions along an axis that are on the screen. @typedef {Int32Array} Places */

/** One cell of a head. @typedef {{query: number, key: number, weight: number}} Cell */

/** What one head computed. Weights lie key by key, as places in `values`: `values[weights[key * queries + query]]`. */
export class Head {
  /** @param {Uint16Array} weights
   * @param {ArrayLike<number>} sums  of each query's row
   * @param {Uint8Array | null} blocked  1 where a query may not look, key by key
   * @param {number} queries @param {number} keys
   * @param {ArrayLike<number>} values  the weight that each number stands for
   * @param {Float32Array | null} below  how far below the cut a key is that an indexer left out; NaN for all others */
  constructor(weights, sums, blocked, queries, keys, values, below = null) {
    this.weights = weights;
    this.sums = sums;
    this.blocked = blocked;
    this.queries = queries;
    this.keys = keys;
    this.values = values;
    this.below = below;
  }

  /** How far below the cut a key is that could have been picked; null if it was picked, or couldn't be.
   * @param {number} query @param {number} key */
  leftOut(query, key) {
    const below = this.below?.[key * this.queries + query];
    return below === undefined || Number.isNaN(below) ? null : below;
  }

  /** @param {number} query @param {number} key */
  at(query, key) {
    return this.values[this.weights[key * this.queries + query]];
  }

  /** @param {number} query @param {number} key */
  isBlocked(query, key) {
    return this.blocked !== null && this.blocked[key * this.queries + query] === 1;
  }

  /** The largest weight among some rows and columns. @param {Places} rows @param {Places} columns */
  maximum(rows, columns) {
    let most = 0;
    for (const key of columns)
      for (const query of rows) most = Math.max(most, this.weights[key * this.queries + query]);
    return this.values[most];
  }

  /** The sum of a row over some columns: the exact sum where all are there, else less what is left out.
   * @param {number} query @param {Places} columns */
  sum(query, columns) {
    if (columns.length === this.keys) return this.sums[query];
    const inSight = new Uint8Array(this.keys);
    for (const key of columns) inSight[key] = 1;
    let hidden = 0;
    for (let key = 0; key < this.keys; key++) if (!inSight[key]) hidden += this.at(query, key);
    return Math.max(0, this.sums[query] - hidden);
  }

  /** The weight under each pixel, as `sample` in raster.js gives it.
   * @param {Places} rows @param {Places} columns @param {number} width @param {number} height */
  sample(rows, columns, width, height) {
    return sample(this, rows, columns, width, height);
  }

  /** The heaviest cells among some rows and columns, heaviest first.
   * @param {Places} rows @param {Places} columns @param {number} count
   * @param {(query: number, key: number) => boolean} accepts */
  strongest(rows, columns, count, accepts = () => true) {
    const found = new Strongest(count);
    for (const key of columns)
      for (const query of rows) {
        const weight = this.at(query, key);
        if (weight > 0 && accepts(query, key)) found.add(query, key, weight);
      }
    return found.sorted();
  }
}

/** Why a cell has no weight: blocked, or left out by an indexer.
 * @param {{isBlocked: Head["isBlocked"], leftOut?: Head["leftOut"]}} head @param {number} query @param {number} key
 * @returns {string | null} */
export function withoutWeight(head, query, key) {
  if (!head.isBlocked(query, key)) return null;
  const below = head.leftOut?.(query, key) ?? null;
  return below === null ? "blocked" : notPicked(below);
}

/** That an indexer left a key out, and by how much where there is a cut. @param {number} below */
export function notPicked(below) {
  return Number.isFinite(below) ? `not picked, ${Number(below.toPrecision(3))} below the cut` : "not picked";
}

/** How far below the cut each key is that was left out, key by key; NaN for all others.
 * @param {Uint8Array} cells  1 where a key was left out @param {{body: Uint8Array}} payload @param {Place} place */
export function belowCut(cells, payload, place) {
  const [found, below] = [new Float32Array(cells.length).fill(NaN), numbersAt(payload, place, Float32Array)];
  let next = 0;
  cells.forEach((one, at) => {
    if (one) found[at] = below[next++];
  });
  return found;
}
