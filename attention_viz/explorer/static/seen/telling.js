// What a head does with a chosen patch, in a sentence of parts with their roles.

import {said} from "../claim/said.js";
import {patchAt} from "../data/tokens.js";
import {halfOn, lineOf, overPatches, regionOf} from "./patches.js";

/** @import {Axis} from "../data/tokens.js"
 * @import {Direction, Patches, Region, Weights} from "./patches.js" */

/** @typedef {[text: string, role: "" | "query" | "key" | "number"]} Said */

// A region is told where it has this much weight and this many times what its part of the picture would have.
const [LEAST, TIMES] = [0.12, 2];
// What is no patch is told where it has more than this.
const RESTS = 0.4;
const [A_TENTH, NO_WEIGHT] = [0.1, 1e-9];

/** A position in words: a patch by its row and column from 0, as its label.
 * @param {Patches} patches @param {Pick<Axis, "labels">} axis @param {number} position */
export function nameOfPatch(patches, {labels}, position) {
  const number = patches.numbers[position];
  if (number < 0) return labels[position] === "[CLS]" ? "the class token" : labels[position];
  return patchAt(Math.floor(number / patches.across), number % patches.across);
}

/** Where a region is: the name of its patch where it is one, else the middle of its patches.
 * @param {Region} region @param {Pick<Patches, "across">} patches */
export function nameOfRegion({patches: all}, {across}) {
  const middle = (/** @type {number[]} */ numbers) =>
    Math.round(numbers.reduce((sum, one) => sum + one, 0) / numbers.length);
  const [row, column] = [middle(all.map((at) => Math.floor(at / across))), middle(all.map((at) => at % across))];
  const where = patchAt(row, column);
  return all.length === 1 ? where : `${all.length} patches around ${where}`;
}

/** What a head does with a chosen position.
 * @param {Weights} head @param {number} chosen @param {Direction} direction @param {Patches} patches
 * @param {Pick<Axis, "labels" | "count">} axis @returns {{said: Said[], region: Region | null}} */
export function tellPatch(head, chosen, direction, patches, axis) {
  const line = lineOf(head, chosen, axis.count, direction);
  const weights = overPatches(line, patches);
  const name = nameOfPatch(patches, axis, chosen);
  const named = /** @type {Said} */ ([name.slice(0, 1).toUpperCase() + name.slice(1), "query"]);
  if (direction === "to") return {said: tellColumn(line, name), region: null};
  const rest = patches.others.reduce(
    (best, position) => (line[position] > (line[best] ?? -1) ? position : best),
    patches.others[0] ?? -1,
  );
  if (rest >= 0 && line[rest] > RESTS) {
    const where = nameOfPatch(patches, axis, rest);
    /** @type {Said[]} */
    const to = rest === chosen ? said` looks at itself: ` : said` looks at ${[where, "key"]}: `;
    return {said: said`${named}${to}${[line[rest].toFixed(2), "number"]}`, region: null};
  }
  const region = regionOf(weights, patches);
  const times = region.share / (region.patches.length / weights.length);
  if (region.share < LEAST || times < TIMES) {
    const half = /** @type {Said} */ ([String(halfOn(weights)), "number"]);
    const widely = said`${named} looks broadly: half of its weight on patches is on ${half} of ${weights.length}`;
    return {said: widely, region: null};
  }
  const own = region.patches.includes(patches.numbers[chosen]);
  const where =
    own && region.patches.length === 1
      ? "itself"
      : own
        ? `${region.patches.length} patches around itself`
        : nameOfRegion(region, patches);
  return {said: said`${named} looks at ${[where, "key"]}: ${[region.share.toFixed(2), "number"]}`, region};
}

/** What looks at a position: its column, which doesn't add up to 1.
 * @param {Float32Array} line @param {string} name @returns {Said[]} */
function tellColumn(line, name) {
  const many = line.filter((weight) => weight >= A_TENTH).length;
  const most = line.reduce((so, weight) => Math.max(so, weight), 0);
  if (most < NO_WEIGHT) return said`Nothing looks at ${[name, "key"]}`;
  const [count, of] = /** @type {[Said, Said]} */ ([
    [String(many), "number"],
    [name, "key"],
  ]);
  return said`${count} of ${line.length} give ${of} a tenth of their weight or more`;
}
