// The frames around the chosen patch and around what it looks at.

import {element} from "../parts/element.js";
import {chosenPosition} from "./chosen.js";
import {tellPatch} from "./telling.js";

/** @import {StageView} from "./chosen.js"
 * @import {Patches} from "./patches.js" */

/** The frames around the chosen patch and around what it looks at, with how much that is.
 * @param {StageView} view @param {HTMLElement} place @param {Patches} patches */
export function placeMarks(view, place, patches) {
  const {head, stream} = view.now;
  const {direction} = view.store.state;
  const chosen = chosenPosition(view);
  const marks = blockedOf(view, patches, chosen);
  const number = patches.numbers[chosen];
  const region = head === null ? null : tellPatch(head, chosen, direction, patches, stream.keys).region;
  if (region && !region.patches.includes(number))
    marks.push(markOf(region.patches, patches, "av-marks-key", region.share.toFixed(2)));
  if (number >= 0) marks.push(markOf([number], patches, direction === "to" ? "av-marks-key" : "av-marks-query", ""));
  place.replaceChildren(...marks);
}

/** The patches that the chosen position may not look at, hatched.
 * @param {StageView} view @param {Patches} patches @param {number} chosen */
function blockedOf({now: {head}}, patches, chosen) {
  if (head === null) return [];
  return Array.from(patches.positions.keys())
    .filter((at) => patches.positions[at] >= 0 && head.isBlocked(chosen, patches.positions[at]))
    .map((at) => markOf([at], patches, "av-patch-blocked", ""));
}

/** @param {number[]} numbers @param {Patches} patches @param {string} role @param {string} label */
function markOf(numbers, {down, across}, role, label) {
  const [rows, columns] = [numbers.map((at) => Math.floor(at / across)), numbers.map((at) => at % across)];
  const [top, left] = [Math.min(...rows), Math.min(...columns)];
  const mark = element("div", {class: `av-patch-mark ${role}`}, label ? element("span", {}, label) : null);
  Object.assign(mark.style, {
    left: `${(100 * left) / across}%`,
    top: `${(100 * top) / down}%`,
    width: `${(100 * (Math.max(...columns) + 1 - left)) / across}%`,
    height: `${(100 * (Math.max(...rows) + 1 - top)) / down}%`,
  });
  return mark;
}
