// Which patch is meant: pointed at, walked to, or kept; and what is said of it.

import {lineOf, overPatches, regionsOf} from "./patches.js";
import {arrowStep} from "../parts/element.js";
import {tellLookers, tellPatch} from "./telling.js";

/** @import {View, Writes} from "../parts/view.js"
 * @import {Direction, Patches} from "./patches.js" */

/** @typedef {View & Writes<"direction" | "smooth" | "strength" | "loaded" | "query" | "key" | "overQuery" | "overKey">} StageView */

/** The position that is looked at: under the pointer, else the pinned one, else the one that the head is told by; and
 * whether it looks, or is looked at: beside words a patch that is pointed at is looked at by them.
 * @param {Pick<View, "store" | "now">} view @param {Pick<Patches, "joint">} patches
 * @returns {{position: number, direction: Direction}} */
export function lookedAt({store: {state}, now}, {joint}) {
  if (joint && state.overQuery === null && state.overKey !== null) return {position: state.overKey, direction: "to"};
  const direction = joint ? "from" : state.direction;
  return {position: state.overQuery ?? (direction === "to" ? now.pair?.key : now.pair?.query) ?? 0, direction};
}

/** The patches that are meant by one that is pointed at: the region that the kept word looks at, if it lies in it.
 * @param {Pick<View, "store" | "now">} view @param {Patches} patches @param {number} position @returns {number[]} */
export function regionAt({now: {head, pair, stream}}, patches, position) {
  const number = patches.numbers[position];
  if (head === null || !pair || patches.numbers[pair.query] >= 0) return [number];
  const weights = overPatches(lineOf(head, pair.query, stream.keys.count, "from"), patches);
  return regionsOf(weights, patches).find((one) => one.patches.includes(number))?.patches ?? [number];
}

/** How much each position has to do with what is looked at: its weight there, or what it gives to the region.
 * @param {Pick<View, "store" | "now">} view @param {Patches} patches @returns {Float32Array} */
export function lookedLine(view, patches) {
  const {head, stream} = view.now;
  const {position, direction} = lookedAt(view, patches);
  const line = new Float32Array(stream.keys.count);
  if (head === null) return line;
  if (!patches.joint || direction === "from") return lineOf(head, position, stream.keys.count, direction);
  const keys = regionAt(view, patches, position).map((at) => patches.positions[at]);
  return line.map((_, query) => keys.reduce((sum, key) => sum + head.at(query, key), 0));
}

/** The light of each patch: its weight, or for a region that words look at, the region itself.
 * @param {Pick<View, "store" | "now">} view @param {Patches} patches @returns {Float32Array} */
export function lightLine(view, patches) {
  const {position, direction} = lookedAt(view, patches);
  if (!patches.joint || direction === "from") return overPatches(lookedLine(view, patches), patches);
  const region = regionAt(view, patches, position);
  return Float32Array.from(patches.positions, (_, at) => Number(region.includes(at)));
}

/** Keep a position, with what it looks at most, and tell the host.
 * @param {StageView} view @param {Patches} patches @param {number} position
 * @param {Direction} [direction]  by default the reader's */
export function pinPatch(view, {joint, numbers}, position, direction = view.store.state.direction) {
  const {head, stream} = view.now;
  const way = joint ? (numbers[position] < 0 ? "from" : "to") : direction;
  const line = head === null ? null : lineOf(head, position, stream.keys.count, way);
  // Beside words a patch is kept with the word that looks at it most.
  if (joint && way === "to") line?.forEach((_, at) => (line[at] = numbers[at] < 0 ? line[at] : -1));
  const other = line === null ? position : line.indexOf(Math.max(...line));
  view.pin(way === "to" ? {query: other, key: position} : {query: position, key: other}, {pair: true});
  view.point({query: null, key: null});
}

/** What pointing at a patch means: it looks, or beside words it is looked at. @param {number} patch @param {boolean} joint */
export function pointing(patch, joint) {
  return joint ? {query: null, key: patch} : {query: patch, key: null};
}

/** @param {StageView} view @param {Patches} patches @param {KeyboardEvent} event */
export function walkPatches(view, patches, event) {
  const {positions, numbers, across, down, joint} = patches;
  const chosen = lookedAt(view, patches).position;
  const from = Math.max(0, numbers[chosen]);
  if (event.key === "Enter") pinPatch(view, patches, chosen);
  else if (event.key === "Escape") view.point({query: null, key: null});
  const [row, column] = [Math.floor(from / across), from % across];
  const step = arrowStep(event.key);
  if (!step) return;
  event.preventDefault();
  let [toRow, toColumn] = [row + step[0], column + step[1]];
  const isInside = () => toRow >= 0 && toRow < down && toColumn >= 0 && toColumn < across;
  // Between two frames there is a gap.
  while (isInside() && positions[toRow * across + toColumn] < 0)
    [toRow, toColumn] = [toRow + step[0], toColumn + step[1]];
  if (isInside()) view.point(pointing(positions[toRow * across + toColumn], joint));
}

/** What the explorer's sentence says of a picture.
 * @param {Pick<View, "store" | "now">} view @param {Patches} patches */
export function saidOfPicture(view, patches) {
  const {now} = view;
  if (now.head === null) return null;
  const {position, direction} = lookedAt(view, patches);
  if (patches.joint && direction === "to") return tellLookers(lookedLine(view, patches), patches, now.stream.keys);
  return tellPatch(now.head, position, direction, patches, now.stream.keys).said;
}
