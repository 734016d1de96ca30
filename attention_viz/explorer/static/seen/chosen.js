// Which patch is meant: pointed at, walked to, or kept; and what is said of it.

import {lineOf} from "./patches.js";
import {arrowStep} from "../parts/element.js";
import {tellPatch} from "./telling.js";

/** @import {View, Writes} from "../parts/view.js"
 * @import {Patches} from "./patches.js" */

/** @typedef {View & Writes<"direction" | "smooth" | "strength" | "loaded" | "query" | "key" | "overQuery" | "overKey">} StageView */

/** The position that is looked at: under the pointer, else the pinned one, else the one that the head is told by.
 * @param {Pick<View, "store" | "now">} view */
export function chosenPosition({store: {state}, now}) {
  return state.overQuery ?? (state.direction === "to" ? now.pair?.key : now.pair?.query) ?? 0;
}

/** Keep a position, with what it looks at most, and tell the host. @param {StageView} view @param {number} position */
export function pinPatch(view, position) {
  const {head, stream} = view.now;
  const {direction} = view.store.state;
  const line = head === null ? null : lineOf(head, position, stream.keys.count, direction);
  const other = line === null ? position : line.indexOf(Math.max(...line));
  view.pin(direction === "to" ? {query: other, key: position} : {query: position, key: other}, {pair: true});
  view.point({query: null, key: null});
}

/** @param {StageView} view @param {Patches} patches @param {KeyboardEvent} event */
export function walkPatches(view, {positions, numbers, across, down}, event) {
  const chosen = chosenPosition(view);
  const from = Math.max(0, numbers[chosen]);
  if (event.key === "Enter") pinPatch(view, chosen);
  else if (event.key === "Escape") view.point({query: null, key: null});
  const [row, column] = [Math.floor(from / across), from % across];
  const step = arrowStep(event.key);
  if (!step) return;
  event.preventDefault();
  const [toRow, toColumn] = [row + step[0], column + step[1]];
  if (toRow >= 0 && toRow < down && toColumn >= 0 && toColumn < across)
    view.point({query: positions[toRow * across + toColumn], key: null});
}

/** What the explorer's sentence says of a picture.
 * @param {Pick<View, "store" | "now">} view @param {Patches} patches */
export function saidOfPicture(view, patches) {
  const {now, store} = view;
  if (now.head === null) return null;
  return tellPatch(now.head, chosenPosition(view), store.state.direction, patches, now.stream.keys).said;
}
