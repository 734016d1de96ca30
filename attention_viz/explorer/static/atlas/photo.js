// Of an image's heads: the photo in small, lit by what one position attends to in each.

import {readPlane} from "../data/payload.js";
import {drawLitPhoto} from "../chart/photo.js";
import {sheetsOf} from "../seen/lit.js";
import {litPhoto} from "../seen/tiles.js";
import {weightText} from "../data/scale.js";

/** @import {Payload, PackedPicture, Place} from "../data/payload.js"
 * @import {Colour} from "../data/scale.js"
 * @import {AtlasCell, AtlasHeader} from "./grid.js"
 * @import {Sheets} from "../seen/lit.js"
 * @import {Photo} from "../seen/tiles.js" */

/** What the atlas has of an image, as `pack_photo` in atlas_photo.py writes it: `lights` are bytes of each head's patches,
 * `from` the patch whose row they are, -1 for the class token or for the last word beside the image, which `word` quotes,
 * and `tops` the largest weight of each.
 * @typedef {PackedPicture & {down: number, across: number, lights: Place, from: number[], tops: number[],
 *   word: string | null}} PackedLights */

/** @typedef {Photo & Pick<PackedLights, "down" | "across" | "from" | "tops" | "word"> & {lights: Uint8Array,
 *   sheets?: Sheets}} Lights */

/** Read the image and the lights of its heads, and leave them in the header; does nothing for a text.
 * @param {Payload<AtlasHeader>} payload */
export async function readLights(payload) {
  const {photo} = payload.header;
  if (!photo) return;
  const [dots, lights] = await Promise.all([readPlane(payload, photo.at), readPlane(payload, photo.lights)]);
  payload.header.lights = {...photo, dots, lights};
}

/** How high and wide a cell of an image may be. @param {Lights | undefined} lights */
export function photoShape(lights) {
  return lights ? {tallest: lights.rows / lights.columns, broadest: lights.columns / lights.rows} : {};
}

/** A head's photo, with a frame around the patch whose row it is.
 * @param {Lights} lights @param {Pick<AtlasCell, "place">} cell @param {Colour} colour  of the frame
 * @param {number} width @param {number} height */
export function drawLit(lights, {place}, colour, width, height) {
  const {down, across, from} = lights;
  const count = down * across;
  const weights = Float32Array.from(lights.lights.subarray(place * count, (place + 1) * count));
  const image = litPhoto(lights, weights, lights, width, height);
  const patch = from[place];
  if (patch < 0) return image;
  const [top, left] = [Math.floor(patch / across) / down, (patch % across) / across].map(
    (part, side) => part * (side ? width : height),
  );
  const [wide, high] = [width / across, height / down];
  for (let y = Math.floor(top); y < Math.min(height, top + high); y++)
    for (let x = Math.floor(left); x < Math.min(width, left + wide); x++) {
      const within = Math.min(x - left, left + wide - 1 - x, y - top, top + high - 1 - y);
      if (within < 1 || wide < 4) image.data.set([...colour, 255], 4 * (y * width + x));
    }
  return image;
}

/** A head's photo as the page draws the chosen head's. @param {HTMLElement} node @param {Lights} lights
 * @param {Pick<AtlasCell, "place">} cell */
export function drawLarge(node, lights, {place}) {
  const {down, across, from} = lights;
  const weights = Float32Array.from(lights.lights.subarray(place * down * across, (place + 1) * down * across));
  lights.sheets ??= sheetsOf(lights);
  drawLitPhoto(node, {sheets: lights.sheets, weights, down, across, patch: from[place]});
}

/** What a photo shows, in words. @param {Lights} lights @param {Pick<AtlasCell, "place">} cell */
export function litWords({from, tops, word}, {place}) {
  const who = from[place] < 0 ? (word ?? "the class token, a summary slot,") : "the framed patch";
  return `Light: what ${who} attends to. Fully lit: ${weightText(tops[place])}.`;
}
