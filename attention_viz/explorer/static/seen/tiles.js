// A photo in small, dark but for the light of a head's weights, to the head's own largest weight.

import {element} from "../parts/element.js";
import {DARK, lightOf} from "./veil.js";

/** @import {PackedPicture} from "../data/payload.js" */

/** The photo as the model read it. @typedef {Pick<PackedPicture, "rows" | "columns"> & {dots: Uint8Array}} Photo */

/** A small photo lit by weights over its patches, `bright` at most. The explorer's row of heads and the atlas draw their
 * heads with it.
 * @param {Photo} photo @param {Float32Array} weights  of the patches, row by row
 * @param {{down: number, across: number}} patches @param {number} width @param {number} height  in device pixels
 * @param {number} [bright]  from 0 to 1 */
export function litPhoto(photo, weights, patches, width, height, bright = BRIGHT) {
  const {data: from} = smallPhoto(photo, width, height);
  const light = lightOf(weights, patches, {wide: width, high: height, smooth: true});
  const image = new ImageData(width, height);
  // Read once: each reading of `data` asks the browser.
  const {data: to} = image;
  for (let dot = 0, at = 0; dot < light.length; dot++, at += 4) {
    const share = DARK + (bright - DARK) * light[dot];
    to[at] = share * from[at];
    to[at + 1] = share * from[at + 1];
    to[at + 2] = share * from[at + 2];
    to[at + 3] = 255;
  }
  return image;
}

/** The whole photo, as bright as asked for. @param {Photo} photo @param {number} share */
export function photoImage({dots, rows, columns}, share) {
  const image = new ImageData(columns, rows);
  const {data} = image;
  for (let dot = 0, at = 0; at < data.length; dot += 3, at += 4) {
    data[at] = share * dots[dot];
    data[at + 1] = share * dots[dot + 1];
    data[at + 2] = share * dots[dot + 2];
    data[at + 3] = 255;
  }
  return image;
}

// As bright as the photo itself, as in the figures of `views/figures/seen.py`.
const BRIGHT = 1;

/** All heads have one size: the photo is made as small as they are once. @type {{of: Uint8Array | null, image: ImageData | null}} */
let lastSmall = {of: null, image: null};

/** @param {Photo} photo @param {number} width @param {number} height */
function smallPhoto(photo, width, height) {
  const {dots, rows, columns} = photo;
  const {of, image} = lastSmall;
  if (image && of === dots && image.width === width && image.height === height) return image;
  const [large, small] = [element("canvas", {width: columns, height: rows}), element("canvas", {width, height})];
  large.getContext("2d")?.putImageData(photoImage(photo, 1), 0, 0);
  const context = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d", {willReadFrequently: true}));
  Object.assign(context, {imageSmoothingEnabled: true, imageSmoothingQuality: "high"});
  context.drawImage(large, 0, 0, width, height);
  lastSmall = {of: dots, image: context.getImageData(0, 0, width, height)};
  return /** @type {ImageData} */ (lastSmall.image);
}
