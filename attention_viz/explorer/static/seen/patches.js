// A picture's patches: where each stands, what one of them looks at or is looked at by, and which lie together.

/** @import {Axis} from "../data/tokens.js"
 * @import {Sheet} from "../data/payload.js"
 * @import {State} from "../parts/view.js" */

/** How the positions of a picture stand in it.
 * @typedef {object} Patches
 * @property {number} down  rows of patches
 * @property {number} across
 * @property {Int32Array} positions  of each patch, row by row
 * @property {Int32Array} numbers  of each position: which patch it is, from 0, or -1
 * @property {number[]} others  positions that are no patch, such as the class token
 * @property {boolean} joint  whether words stand beside the picture
 * @property {number} count  of places that are patches: between the images of a sheet there are none
 * @property {Sheet | null} sheet  how images stand on it, where there are several */

/** Whether a chosen patch looks, or is looked at. @typedef {"from" | "to"} Direction */

/** @typedef {{at: (query: number, key: number) => number}} Weights */

/** A part of a picture: its patches, and how much weight they have together. @typedef {{patches: number[], share: number}} Region */

/** A patch belongs to a region if it has at least this share of the largest weight. */
export const TOGETHER = 0.5;

/** The patches along an axis; null where none of its positions has a row and a column.
 * @param {Pick<Axis, "place" | "count" | "dimmed">} axis @param {Sheet | null} [sheet] @returns {Patches | null} */
export function patchesOf({place, count, dimmed}, sheet = null) {
  const seen = (place ?? []).flatMap((one, position) =>
    one && one.length === 2 ? [{position, row: one[0], column: one[1]}] : [],
  );
  if (!seen.length) return null;
  const ends = sheet?.panels ?? seen.map(({row, column}) => ({row, column, down: 1, across: 1}));
  const down = Math.max(...ends.map((one) => one.row + one.down));
  const across = Math.max(...ends.map((one) => one.column + one.across));
  const [positions, numbers] = [new Int32Array(down * across).fill(-1), new Int32Array(count).fill(-1)];
  for (const {position, row, column} of seen) {
    positions[row * across + column] = position;
    numbers[position] = row * across + column;
  }
  const others = Array.from(numbers.keys()).filter((position) => numbers[position] < 0);
  const joint = others.some((position) => !dimmed[position]);
  return {down, across, positions, numbers, others, joint, count: seen.length, sheet};
}

/** What decides which row of which head is shown, and whether it is there. @type {(keyof State)[]} */
export const SHOWN_ROW = ["loaded", "layer", "head", "preview", "overQuery", "query", "pairQuery", "pairKey"];

/** What each position has to do with a chosen one: what it gives to each, or what each gives to it.
 * @param {Weights} head @param {number} chosen @param {number} count @param {Direction} direction */
export function lineOf(head, chosen, count, direction) {
  const line = new Float32Array(count);
  for (let other = 0; other < count; other++)
    line[other] = direction === "from" ? head.at(chosen, other) : head.at(other, chosen);
  return line;
}

/** The weights of the patches alone, row by row. @param {Float32Array} line @param {Patches} patches */
export function overPatches(line, {positions}) {
  const found = new Float32Array(positions.length);
  for (let at = 0; at < found.length; at++) found[at] = positions[at] < 0 ? 0 : line[positions[at]];
  return found;
}

/** The groups of patches that touch each other and have at least half of the largest weight, heaviest group first: what
 * the contour encloses; none where no patch has any weight. Python's `spots.py` has the same rule.
 * @param {Float32Array} weights  of the patches
 * @param {Pick<Patches, "down" | "across">} patches @returns {Region[]} */
export function regionsOf(weights, patches) {
  const most = weights.reduce((so, weight) => Math.max(so, weight), 0);
  if (most === 0) return [];
  const left = new Set([...weights.keys()].filter((at) => weights[at] >= TOGETHER * most));
  /** @type {Region[]} */
  const found = [];
  for (const first of left) {
    const [part, next] = [[first], [first]];
    left.delete(first);
    for (let at = next.pop(); at !== undefined; at = next.pop())
      for (const beside of besides(at, patches))
        if (left.delete(beside)) {
          part.push(beside);
          next.push(beside);
        }
    part.sort((one, other) => one - other);
    found.push({patches: part, share: part.reduce((sum, at) => sum + weights[at], 0)});
  }
  return found.sort((one, other) => other.share - one.share);
}

/** The patches above, below and beside one. @param {number} at @param {Pick<Patches, "down" | "across">} patches */
function besides(at, {down, across}) {
  const [row, column] = [Math.floor(at / across), at % across];
  return [
    ...(row > 0 ? [at - across] : []),
    ...(row < down - 1 ? [at + across] : []),
    ...(column > 0 ? [at - 1] : []),
    ...(column < across - 1 ? [at + 1] : []),
  ];
}

/** How many patches hold half of the weight of all, those with the most first. @param {Float32Array} weights */
export function halfOn(weights) {
  const sorted = [...weights].sort((one, other) => other - one);
  const half = sorted.reduce((sum, weight) => sum + weight, 0) / 2;
  let [sum, count] = [0, 0];
  while (sum < half && count < sorted.length) sum += sorted[count++];
  return count;
}
