// One head of which all weights are there.

import {sample} from "./raster.js";
import {Strongest} from "./strongest.js";

/** Positions along an axis that are on the screen. @typedef {Int32Array} Places */

/** One cell of a head. @typedef {{query: number, key: number, weight: number}} Cell */

/** What one head computed. Weights lie key by key, as places in `values`: `values[weights[key * queries + query]]`. */
export class Head {
  /** @param {Uint16Array} weights
   * @param {ArrayLike<number>} sums  of each query's row
   * @param {Uint8Array | null} blocked  1 where a query may not look, key by key
   * @param {number} queries @param {number} keys
   * @param {ArrayLike<number>} values  the weight that each number stands for */
  constructor(weights, sums, blocked, queries, keys, values) {
    this.weights = weights;
    this.sums = sums;
    this.blocked = blocked;
    this.queries = queries;
    this.keys = keys;
    this.values = values;
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
