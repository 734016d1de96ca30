// Both images beside each other, each lit by the query's row in its head, as the explorer lights one: a contour around
// what has half of the largest weight, and each region's weight. A press on a patch makes it the query.

import {arrowStep, element, isPointing} from "../parts/element.js";
import {readPlane} from "../data/payload.js";
import {marksOf} from "../seen/marks.js";
import {paintLit, sheetsOf} from "../seen/lit.js";
import {overPatches} from "../seen/patches.js";
import {tellPatch} from "../seen/telling.js";

/** @import {CompareHeader, Phrase} from "./compare.js"
 * @import {PairHearing, PairRow} from "./pairs.js"
 * @import {Payload, Place} from "../data/payload.js"
 * @import {Patches} from "../seen/patches.js"
 * @import {Sheets} from "../seen/lit.js" */

/** An image as `pack_compare` writes it: `places` are those of its patches among the keys, row by row, -1 for none;
 * `joint` whether words stand beside it.
 * @typedef {{rows: number, columns: number, at: Place, down: number, across: number, places: number[],
 *   joint: boolean}} ComparedPicture */

/** @typedef {{patches: Patches, sheets: Sheets, canvas: HTMLCanvasElement, marks: HTMLElement}} PicturedSide */

const HINT = "Light is weight. The violet line is at half of the largest. Arrow keys move, Enter keeps.";

/** Two pictures, hidden where the sides have none. */
export class PairedPictures {
  /** @param {PairHearing} hearing */
  constructor(hearing) {
    this.hearing = hearing;
    this.node = element("div", {class: "av-pair-pictures", "data-testid": "compare-pictures", hidden: true});
    /** @type {PicturedSide[]} */
    this.sides = [];
    this.query = 0;
    /** @type {string[]} */
    this.names = [];
    this.build = 0;
  }

  /** Read the images; resolves to false where there are none, or others came meanwhile.
   * @param {Payload<CompareHeader>} payload */
  async load(payload) {
    const {pictures, sides, keys} = payload.header;
    const build = ++this.build;
    this.node.hidden = !pictures;
    this.sides = [];
    if (!pictures) return false;
    const dots = await Promise.all(pictures.map(({at}) => readPlane(payload, at)));
    if (build !== this.build) return false;
    this.names = keys.map(([own, partner]) => own ?? partner ?? "");
    this.sides = pictures.map((picture, side) => ({
      patches: patchesAmong(picture, keys.length),
      sheets: sheetsOf({...picture, dots: dots[side]}),
      canvas: this.canvas(picture, `${side + 1}: ${sides[side].name}`),
      marks: element("div", {class: "av-picture-marks", "aria-hidden": "true"}),
    }));
    this.node.replaceChildren(
      ...this.sides.map(({canvas, marks}, side) =>
        element(
          "figure",
          {},
          element("figcaption", {}, element("b", {}, String(side + 1)), ` ${sides[side].name}`),
          element("div", {class: "av-picture-frame"}, canvas, marks),
        ),
      ),
      element("p", {class: "av-quiet"}, HINT),
      // Equal bytes are packed once.
      pictures[0].at[0] === pictures[1].at[0] && sides[0].name === sides[1].name
        ? element("p", {class: "av-quiet"}, "Choose the second image in the menu “Two images”.")
        : "",
    );
    return true;
  }

  /** @param {ComparedPicture} picture @param {string} name */
  canvas(picture, name) {
    const canvas = element("canvas", {role: "img", tabindex: 0, "aria-label": name});
    canvas.onclick = (event) => {
      const place = placeIn(picture, canvas, event);
      if (place !== null) this.hearing.choose(place);
    };
    canvas.onpointermove = (event) => {
      if (isPointing(event)) this.hearing.point(placeIn(picture, canvas, event), null);
    };
    canvas.onpointerleave = () => this.hearing.point(null, null);
    canvas.onkeydown = (event) => this.walk(picture, event);
    return canvas;
  }

  /** @param {ComparedPicture} picture @param {KeyboardEvent} event */
  walk({down, across, places}, event) {
    if (event.key === "Enter") this.hearing.choose(this.query);
    const step = arrowStep(event.key);
    if (!step) return;
    event.preventDefault();
    const from = Math.max(0, places.indexOf(this.query));
    const [row, column] = [Math.floor(from / across) + step[0], (from % across) + step[1]];
    if (row < 0 || row >= down || column < 0 || column >= across) return;
    const place = places[row * across + column];
    if (place >= 0) this.hearing.point(place, null);
  }

  /** @param {PairRow} row */
  draw({one, other, query}) {
    this.query = query;
    this.sides.forEach(({patches, sheets, canvas, marks}, side) => {
      const weights = finite(side ? other : one);
      paintLit(canvas, sheets, overPatches(weights, patches), patches, {side: canvas.clientWidth || 320});
      const {regions} = tellRow(weights, query, patches, this.names);
      marks.replaceChildren(...marksOf(regions, patches.numbers[query], "from", patches));
    });
  }

  /** What both heads do with the query, in a sentence; null until the images are there.
   * @param {CompareHeader} header @param {Pick<PairRow, "one" | "other" | "query">} row @returns {Phrase | null} */
  tell({where}, {one, other, query}) {
    if (!this.sides.length) return null;
    const [first, second] = [one, other].map((row, side) =>
      tellRow(finite(row), query, this.sides[side].patches, this.names),
    );
    return [...first.said, [`. ${where} it`, ""], ...second.said.slice(1)];
  }
}

/** @param {ComparedPicture} picture @param {number} count  of places @returns {Patches} */
function patchesAmong({down, across, places, joint}, count) {
  const numbers = new Int32Array(count).fill(-1);
  places.forEach((place, number) => {
    if (place >= 0) numbers[place] = number;
  });
  const others = [...numbers.keys()].filter((place) => numbers[place] < 0);
  return {down, across, positions: Int32Array.from(places), numbers, others, joint, count: places.length, sheet: null};
}

/** @param {Float32Array} weights @param {number} query @param {Patches} patches @param {string[]} names */
function tellRow(weights, query, patches, names) {
  const head = {at: (/** @type {number} */ _, /** @type {number} */ key) => weights[key]};
  return tellPatch(head, query, "from", patches, {labels: names, names, count: weights.length});
}

/** @param {Float32Array} row */
function finite(row) {
  return row.map((weight) => (Number.isFinite(weight) ? weight : 0));
}

/** The place of the patch that an event happened in. @param {ComparedPicture} picture
 * @param {HTMLCanvasElement} canvas @param {MouseEvent} event */
function placeIn({down, across, places}, canvas, {clientX, clientY}) {
  const {left, top, width, height} = canvas.getBoundingClientRect();
  const [column, row] = [
    Math.floor(((clientX - left) / width) * across),
    Math.floor(((clientY - top) / height) * down),
  ];
  const place = places[Math.min(down - 1, Math.max(0, row)) * across + Math.min(across - 1, Math.max(0, column))];
  return place >= 0 ? place : null;
}
