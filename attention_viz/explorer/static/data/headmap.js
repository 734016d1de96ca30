// A head of a long text while its numbers are on their way: its two maps, which take a twentieth of its bytes.

/**
 * @import {BlockMap, MeanMap} from "./blockmap.js"
 * @import {Places} from "./head.js"
 * @import {OpenKeys} from "./pattern.js"
 */

/** What there is to draw of the whole of a head, and what is known of its rows and of what it blocks. */
export class HeadMap {
  /**
   * @param {BlockMap} map
   * @param {MeanMap} means
   * @param {{queries: number, keys: number, most: number}} entry  most: the largest weight
   * @param {Float32Array} sums  of each row
   * @param {OpenKeys | null} open  null where nothing is blocked
   */
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

  /**
   * Whether rows and columns are all that there are: of some of them the map doesn't know what is largest.
   * @param {Places} rows
   * @param {Places} columns
   */
  shows(rows, columns) {
    return rows.length === this.counts.queries && columns.length === this.counts.keys;
  }

  /** The largest weight. */
  maximum() {
    return this.most;
  }

  /**
   * The number under each pixel.
   * @param {Places} rows
   * @param {Places} columns
   * @param {number} width
   * @param {number} height
   */
  sample(rows, columns, width, height) {
    return this.map.sample(rows, columns, width, height);
  }
}
