// The frame around the chosen patch, and how much each region that it looks at has.

import {element} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {lookedAt} from "./chosen.js";
import {tellPatch} from "./telling.js";

/** @import {StageView} from "./chosen.js"
 * @import {Direction, Patches, Region} from "./patches.js" */

// The part of the picture beside an edge that a label needs.
const AT_EDGE = 0.09;

/** The frame around the chosen patch, and at each region's contour how much weight it has.
 * @param {StageView} view @param {HTMLElement} place @param {Patches} patches */
export function placeMarks(view, place, patches) {
  const {head, stream} = view.now;
  const {position: chosen, direction} = lookedAt(view, patches);
  const looks = direction === "from" || !patches.joint;
  const regions = head === null || !looks ? [] : tellPatch(head, chosen, direction, patches, stream.keys).regions;
  place.replaceChildren(
    ...(looks ? blockedOf(view, patches, chosen) : []),
    ...marksOf(regions, patches.numbers[chosen], direction, patches),
  );
}

/** @param {Region[]} regions @param {number} number  of the chosen patch, -1 for what is none
 * @param {Direction} direction @param {{down: number, across: number}} patches */
export function marksOf(regions, number, direction, patches) {
  const role = direction === "to" ? "av-marks-key" : "av-marks-query";
  return [
    ...regions.map(({patches: all, share}) => markOf(all, patches, "av-region-mark", weightText(share))),
    ...(number >= 0 ? [markOf([number], patches, role, "")] : []),
  ];
}

/** The patches that the chosen position may not look at, hatched.
 * @param {StageView} view @param {Patches} patches @param {number} chosen */
function blockedOf({now: {head}}, patches, chosen) {
  if (head === null) return [];
  return Array.from(patches.positions.keys())
    .filter((at) => patches.positions[at] >= 0 && head.isBlocked(chosen, patches.positions[at]))
    .map((at) => markOf([at], patches, "av-patch-blocked", ""));
}

/** @param {number[]} numbers @param {{down: number, across: number}} patches @param {string} role @param {string} label */
function markOf(numbers, {down, across}, role, label) {
  const [rows, columns] = [numbers.map((at) => Math.floor(at / across)), numbers.map((at) => at % across)];
  const [top, left] = [Math.min(...rows), Math.min(...columns)];
  // At the picture's edge a label stands inside, so that none of it is cut.
  const middle = (left + Math.max(...columns) + 1) / 2 / across;
  const sides = [top / down < AT_EDGE ? "av-label-under" : "", middle < AT_EDGE ? "av-label-right" : ""];
  if (middle > 1 - AT_EDGE) sides.push("av-label-left");
  const named = element("span", {class: sides.filter(Boolean).join(" ")}, label);
  const mark = element("div", {class: `av-patch-mark ${role}`}, label ? named : null);
  Object.assign(mark.style, {
    left: `${(100 * left) / across}%`,
    top: `${(100 * top) / down}%`,
    width: `${(100 * (Math.max(...columns) + 1 - left)) / across}%`,
    height: `${(100 * (Math.max(...rows) + 1 - top)) / down}%`,
  });
  return mark;
}
