// Both images beside each other, each lit by the query's row in its head. A press on a patch makes it the query.

import {element, isPointing} from "../parts/element.js";
import {readPlane} from "../data/payload.js";
import {readStyle} from "../parts/style.js";
import {litPhoto} from "../seen/tiles.js";

/** @import {CompareHeader} from "./compare.js"
 * @import {PairHearing, PairRow} from "./pairs.js"
 * @import {Payload, Place} from "../data/payload.js"
 * @import {Photo} from "../seen/tiles.js" */

/** An image as `pack_compare` writes it: `places` are those of its patches among the keys, row by row, -1 for none.
 * @typedef {{rows: number, columns: number, at: Place, down: number, across: number, places: number[]}} ComparedPicture */

// How high a picture is drawn, in pixels of its canvas.
const PICTURE_HEIGHT = 320;

/** Two pictures, hidden where the sides have none. */
export class PairedPictures {
  /** @param {PairHearing} hearing */
  constructor(hearing) {
    this.hearing = hearing;
    this.node = element("div", {class: "av-pair-pictures", "data-testid": "compare-pictures", hidden: true});
    /** @type {{photo: Photo & ComparedPicture, canvas: HTMLCanvasElement}[]} */
    this.sides = [];
    this.build = 0;
  }

  /** Read the images; resolves to false where there are none, or others came meanwhile.
   * @param {Payload<CompareHeader>} payload */
  async load(payload) {
    const {pictures, sides} = payload.header;
    const build = ++this.build;
    this.node.hidden = !pictures;
    this.sides = [];
    if (!pictures) return false;
    const dots = await Promise.all(pictures.map(({at}) => readPlane(payload, at)));
    if (build !== this.build) return false;
    this.sides = pictures.map((picture, side) => {
      const width = Math.round((PICTURE_HEIGHT * picture.columns) / picture.rows);
      const canvas = element("canvas", {width, height: PICTURE_HEIGHT, role: "img"});
      const photo = {...picture, dots: dots[side]};
      canvas.onclick = (event) => this.press(photo, canvas, event);
      canvas.onpointermove = (event) => {
        if (isPointing(event)) this.hearing.point(placeIn(photo, canvas, event), null);
      };
      canvas.onpointerleave = () => this.hearing.point(null, null);
      return {photo, canvas};
    });
    this.node.replaceChildren(
      ...this.sides.map(({canvas}, side) =>
        element("figure", {}, canvas, element("figcaption", {}, `${side + 1}  ${sides[side].name}`)),
      ),
      element(
        "p",
        {class: "av-quiet"},
        "Light: the framed patch\u2019s weights, fully lit at the largest. Press a patch to make it the query.",
        // Equal bytes are packed once.
        pictures[0].at[0] === pictures[1].at[0] ? "" : " Choose the second image in the menu “Two images”.",
      ),
    );
    return true;
  }

  /** @param {ComparedPicture} picture @param {HTMLCanvasElement} canvas @param {MouseEvent} event */
  press(picture, canvas, event) {
    const place = placeIn(picture, canvas, event);
    if (place !== null) this.hearing.choose(place);
  }

  /** @param {PairRow} row */
  draw({one, other, query, keys}) {
    if (!this.sides.length) return;
    const {colours} = readStyle(this.node);
    this.sides.forEach(({photo, canvas}, side) => {
      const row = side ? other : one;
      const weights = Float32Array.from(photo.places, (at) => (at >= 0 && Number.isFinite(row[at]) ? row[at] : 0));
      const {width, height} = canvas;
      const context = canvas.getContext("2d");
      if (!context) return;
      context.putImageData(litPhoto(photo, weights, photo, width, height), 0, 0);
      for (const [place, colour] of /** @type {const} */ ([
        [keys[side], colours.key],
        [query, colours.query],
      ])) {
        const patch = place === null ? -1 : photo.places.indexOf(place);
        if (patch < 0) continue;
        const [wide, high] = [width / photo.across, height / photo.down];
        Object.assign(context, {strokeStyle: colour, lineWidth: 3});
        context.strokeRect((patch % photo.across) * wide, Math.floor(patch / photo.across) * high, wide, high);
      }
    });
  }
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
