// What a head does with a chosen patch, in a sentence of parts with their roles.

import {said} from "../claim/said.js";
import {patchAt} from "../data/tokens.js";
import {weightText} from "../data/scale.js";
import {halfOn, lineOf, overPatches, regionsOf} from "./patches.js";

/** @import {Axis} from "../data/tokens.js"
 * @import {Panel} from "../data/payload.js"
 * @import {Direction, Patches, Region, Weights} from "./patches.js" */

/** @typedef {[text: string, role: "" | "query" | "key" | "number"]} Said */

// Up to so many regions are told where they have this much weight and this many times what their part of the picture
// would have.
const [LEAST, TIMES, MOST_TOLD] = [0.12, 2, 3];
// What is no patch is told where it has more than this.
const RESTS = 0.4;
const [A_TENTH, NO_WEIGHT] = [0.1, 1e-9];

/** A position in words: a patch by its row and column from 0, as its label.
 * @param {Patches} patches @param {Pick<Axis, "labels" | "names">} axis @param {number} position */
export function nameOfPatch(patches, {labels, names}, position) {
  const number = patches.numbers[position];
  if (number < 0 && patches.joint) return `“${names[position]}”`;
  if (number < 0) return labels[position] === "[CLS]" ? "the class token" : labels[position];
  if (patches.sheet) return names[position];
  return patchAt(Math.floor(number / patches.across), number % patches.across);
}

// By thirds of a picture, as Python's `where_words`.
const WHERE = [
  ["at the upper left", "at the top", "at the upper right"],
  ["on the left", "near the centre", "on the right"],
  ["at the lower left", "at the bottom", "at the lower right"],
];
const COUNTS = ["no", "one", "two", "three"];

/** Where some patches are, in words: the middle of them; on a sheet, in their image.
 * @param {number[]} numbers @param {Pick<Patches, "down" | "across"> & Partial<Pick<Patches, "sheet">>} patches
 * @returns {string} */
export function whereInImage(numbers, {down, across, sheet}) {
  if (sheet) {
    const {where, ...panel} = panelOf(numbers[0], across, sheet);
    const inside = numbers.map(
      (at) => (Math.floor(at / across) - panel.row) * panel.across + (at % across) - panel.column,
    );
    return `${where}, ${whereInImage(inside, {down: panel.down, across: panel.across})}`;
  }
  const third = (/** @type {number[]} */ places, /** @type {number} */ count) => {
    const middle = places.reduce((sum, one) => sum + one + 0.5, 0) / (numbers.length * count);
    return Math.min(2, Math.floor(3 * middle));
  };
  const row = third(
    numbers.map((at) => Math.floor(at / across)),
    down,
  );
  return WHERE[row][
    third(
      numbers.map((at) => at % across),
      across,
    )
  ];
}

/** What all patches together are. @param {Pick<Patches, "sheet">} patches */
export function calledWhole({sheet}) {
  if (sheet?.video) return "video";
  return sheet?.panels.some(({picture}) => picture !== sheet.panels[0].picture) ? "images" : "image";
}

/** The image of a sheet on which a patch is. @param {number} at @param {number} across
 * @param {{panels: Panel[]}} sheet @returns {Panel} */
export function panelOf(at, across, {panels}) {
  const [atRow, atColumn] = [Math.floor(at / across), at % across];
  const isOn = (/** @type {Panel} */ {row, column, down, across: wide}) =>
    atRow >= row && atRow < row + down && atColumn >= column && atColumn < column + wide;
  return panels.find(isOn) ?? panels[0];
}

const BESIDE_IT = [
  ["to its upper left", "above it", "to its upper right"],
  ["to its left", "near it", "to its right"],
  ["to its lower left", "below it", "to its lower right"],
];

/** Where some patches are as seen from another one: by the picture's thirds, or, in the same third, by the side on
 * which they are. As Python's `beside_words`.
 * @param {number[]} numbers @param {number} own  the other patch; -1 for what is no patch
 * @param {Pick<Patches, "down" | "across">} patches */
export function whereFrom(numbers, own, patches) {
  const where = whereInImage(numbers, patches);
  if (own < 0 || where !== whereInImage([own], patches)) return where;
  const {across} = patches;
  const mean = (/** @type {(at: number) => number} */ place) =>
    numbers.reduce((sum, at) => sum + place(at), 0) / numbers.length;
  const below = mean((at) => Math.floor(at / across)) - Math.floor(own / across);
  const right = mean((at) => at % across) - (own % across);
  const side = (/** @type {number} */ by, /** @type {number} */ other) =>
    2 * Math.abs(by) <= Math.abs(other) ? 1 : 1 + Math.sign(by);
  return BESIDE_IT[side(below, right)][side(right, below)];
}

/** A position in a sentence: a patch by where it is, in words.
 * @param {Patches} patches @param {Pick<Axis, "labels" | "names">} axis @param {number} position */
export function spokenPatch(patches, axis, position) {
  const number = patches.numbers[position];
  return number < 0 ? nameOfPatch(patches, axis, position) : `the patch ${whereInImage([number], patches)}`;
}

/** What several regions are called. @param {Region[]} regions @param {number} own  the patch that looks, or -1
 * @param {Patches} patches */
function calledRegions(regions, own, patches) {
  const around = regions.some((one) => one.patches.includes(own));
  if (regions.length > 1) return `${COUNTS[regions.length]} regions${around ? ", one around itself" : ""}`;
  const [{patches: all}] = regions;
  if (around) return all.length === 1 ? "itself" : "the patches around itself";
  return `one ${all.length === 1 ? "patch" : "region"} ${whereFrom(all, own, patches)}`;
}

/** What a head does with a chosen position.
 * @param {Weights} head @param {number} chosen @param {Direction} direction @param {Patches} patches
 * @param {Pick<Axis, "labels" | "names" | "count">} axis @returns {{said: Said[], regions: Region[]}} */
export function tellPatch(head, chosen, direction, patches, axis) {
  const line = lineOf(head, chosen, axis.count, direction);
  const weights = overPatches(line, patches);
  const name = spokenPatch(patches, axis, chosen);
  const looks = patches.joint ? "attends to" : "looks at";
  const named = /** @type {Said} */ ([name.slice(0, 1).toUpperCase() + name.slice(1), "query"]);
  if (direction === "to") return {said: tellColumn(line, chosen, patches, axis), regions: []};
  const rest = patches.others.reduce(
    (best, position) => (line[position] > (line[best] ?? -1) ? position : best),
    patches.others[0] ?? -1,
  );
  if (rest >= 0 && line[rest] > RESTS) {
    const where = spokenPatch(patches, axis, rest);
    /** @type {Said[]} */
    const to = rest === chosen ? said` ${looks} itself: ` : said` ${looks} ${[where, "key"]}: `;
    return {said: said`${named}${to}${[weightText(line[rest]), "number"]}`, regions: []};
  }
  const regions = regionsOf(weights, patches);
  const share = regions.reduce((sum, one) => sum + one.share, 0);
  const count = regions.reduce((sum, one) => sum + one.patches.length, 0);
  if (regions.length > MOST_TOLD || share < LEAST || share < (TIMES * count) / patches.count) {
    const half = /** @type {Said} */ ([String(halfOn(weights)), "number"]);
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    const widely = patches.joint
      ? said`${named} gives the ${calledWhole(patches)} ${[weightText(all), "number"]}, half of that on ${half} of ${patches.count} patches`
      : said`${named} looks broadly: half on ${half} of ${patches.count} patches`;
    return {said: widely, regions: []};
  }
  const where = calledRegions(regions, patches.numbers[chosen], patches);
  const times = Math.round((share * patches.count) / count);
  const area = patches.joint && count > 2 ? `, ${times} times its area` : "";
  return {said: said`${named} ${looks} ${[where, "key"]}: ${[weightText(share), "number"]}${area}`, regions};
}

/** Which words look at a region, and how much each gives to it.
 * @param {Float32Array} line @param {Patches} patches @param {Pick<Axis, "labels" | "names">} axis @returns {Said[]} */
export function tellLookers(line, patches, axis) {
  const most = [...patches.others].sort((one, other) => line[other] - line[one]).slice(0, MOST_TOLD);
  const told = most.filter((word) => line[word] >= A_TENTH);
  const part = /** @type {Said} */ ([`this part of the ${calledWhole(patches)}`, "key"]);
  if (!told.length) return said`No word gives ${part} a tenth of its weight`;
  const parts = told.flatMap((word, at) => [
    ...(at > 0 ? said`, ` : []),
    ...said`${[nameOfPatch(patches, axis, word), "query"]} ${[weightText(line[word]), "number"]}`,
  ]);
  return [...said`Words that attend to ${part}: `, .../** @type {Said[]} */ (parts)];
}

/** What attends most to a position: of its column, which doesn't add up to 1, the largest weight.
 * @param {Float32Array} line @param {number} chosen @param {Patches} patches @param {Pick<Axis, "labels" | "names">} axis
 * @returns {Said[]} */
function tellColumn(line, chosen, patches, axis) {
  const spoken = spokenPatch(patches, axis, chosen);
  if (line.every((weight) => weight < NO_WEIGHT)) return said`Nothing looks at ${[spoken, "key"]}`;
  const name = /** @type {Said} */ ([`${spoken.slice(0, 1).toUpperCase()}${spoken.slice(1)}`, "key"]);
  const most = line.reduce((best, weight, at) => (weight > line[best] ? at : best), 0);
  const own = patches.numbers[chosen];
  const number = patches.numbers[most];
  const who =
    most === chosen
      ? "itself"
      : number < 0
        ? spokenPatch(patches, axis, most)
        : `a patch ${whereFrom([number], own, patches)}`;
  return said`${name} is looked at most by ${[who, "query"]}: ${[weightText(line[most]), "number"]}`;
}
