// A photo in small, dark but for the light of a head's weights, to the head's own largest weight.

import {element} from "../parts/element.js";
import {DARK, lightOf} from "./veil.js";

/** @import {PackedPicture} from "../data/payload.js" */

/** The photo as the model read it. @typedef {Pick<PackedPicture, "rows" | "columns"> & {dots: Uint8Array}} Photo */

/** A small photo lit by weights over its patches. The explorer's row of heads and the atlas draw their heads with it.
 * @param {Photo} photo @param {Float32Array} weights  of the patches, row by row
 * @param {{down: number, across: number}} patches @param {number} width @param {number} height  in device pixels */
export function litPhoto(photo, weights, patches, width, height) {
  const {data} = smallPhoto(photo, width, height);
  const light = lightOf(weights, patches, {wide: width, high: height, smooth: true});
  const image = new ImageData(width, height);
  for (let at = 0; at < light.length; at++) {
    const share = DARK + (BRIGHT - DARK) * light[at];
    for (let colour = 4 * at; colour < 4 * at + 3; colour++) image.data[colour] = share * data[colour];
    image.data[4 * at + 3] = 255;
  }
  return image;
}

// In so small a picture, light has to be seen at a glance: it is stronger than the photo's own.
const BRIGHT = 1.5;

/** All heads have one size: the photo is made as small as they are once. @type {{of: Uint8Array | null, image: ImageData | null}} */
let lastSmall = {of: null, image: null};

/** @param {Photo} photo @param {number} width @param {number} height */
function smallPhoto({dots, rows, columns}, width, height) {
  const {of, image} = lastSmall;
  if (image && of === dots && image.width === width && image.height === height) return image;
  const whole = new ImageData(columns, rows);
  for (let at = 0; at < rows * columns; at++) {
    whole.data.set(dots.subarray(3 * at, 3 * at + 3), 4 * at);
    whole.data[4 * at + 3] = 255;
  }
  const [large, small] = [element("canvas", {width: columns, height: rows}), element("canvas", {width, height})];
  large.getContext("2d")?.putImageData(whole, 0, 0);
  const context = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
  Object.assign(context, {imageSmoothingEnabled: true, imageSmoothingQuality: "high"});
  context.drawImage(large, 0, 0, width, height);
  lastSmall = {of: dots, image: context.getImageData(0, 0, width, height)};
  return /** @type {ImageData} */ (lastSmall.image);
}
