// The heaviest of many cells, kept while they are looked through.

/** @import {Cell} from "./head.js" */

/** At most `count` cells; `least` is what another has to exceed once there are so many. */
export class Strongest {
  /** @param {number} count */
  constructor(count) {
    this.count = count;
    this.least = 0;
    /** @type {Cell[]} */
    this.cells = [];
  }

  /** @param {number} query @param {number} key @param {number} weight */
  add(query, key, weight) {
    if (this.count < 1 || (this.cells.length >= this.count && weight < this.least)) return;
    this.cells.push({query, key, weight});
    if (this.cells.length >= 2 * this.count + 64) this.cells = this.sorted();
    if (this.cells.length === this.count) this.least = Math.min(...this.cells.map((cell) => cell.weight));
  }

  /** Heaviest first; of equals the lower query and key first. */
  sorted() {
    this.cells.sort((a, b) => b.weight - a.weight || a.query - b.query || a.key - b.key).splice(this.count);
    if (this.cells.length === this.count && this.count) this.least = this.cells[this.count - 1].weight;
    return this.cells;
  }
}
