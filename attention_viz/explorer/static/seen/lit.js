// Weights laid over a picture: as light on the darkened photo, with a contour at half of the largest.

import {element} from "../parts/element.js";
import {contourOf} from "./contour.js";
import {photoImage} from "./tiles.js";
import {DARK, veilOf} from "./veil.js";

/** @import {Photo} from "./tiles.js" */

/** The picture's dots: lit, and dark. @typedef {{lit: HTMLCanvasElement, dark: HTMLCanvasElement}} Dots */

/** The dots as they came; as large as the picture is on the screen, since making them so takes longer than laying one
 * over the other; and the veil, which is painted anew for each patch.
 * @typedef {{dots: Dots, sized: Dots, veil: HTMLCanvasElement}} Sheets */

// How many dots the veil has where it is smooth; where it isn't, a dot a patch.
const SMOOTH = 208;
const CONTOUR = [
  {strokeStyle: "rgb(255 255 255 / 85%)", lineWidth: 4},
  {strokeStyle: "#7c3aed", lineWidth: 2},
];

/** @param {Photo} photo @returns {Sheets} */
export function sheetsOf(photo) {
  const [lit, dark] = [1, DARK].map((share) => {
    const canvas = sheetOf(photo.columns, photo.rows);
    contextOf(canvas).putImageData(photoImage(photo, share), 0, 0);
    return canvas;
  });
  return {dots: {lit, dark}, sized: {lit: sheetOf(0, 0), dark: sheetOf(0, 0)}, veil: sheetOf(0, 0)};
}

/** @param {number} width @param {number} height */
function sheetOf(width, height) {
  return element("canvas", {width, height});
}

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/** Draw the picture, dark where the weights aren't, and the contour; without weights as it is.
 * @param {HTMLCanvasElement} canvas @param {Sheets} sheets @param {Float32Array | null} weights  of the patches, row by row
 * @param {{down: number, across: number}} patches @param {{side: number, smooth?: boolean, strength?: number}} look */
export function paintLit(canvas, {dots, sized, veil}, weights, patches, {side, smooth = true, strength = 100}) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const size = Math.round(side * ratio);
  const high = Math.round((size * dots.lit.height) / dots.lit.width);
  if (canvas.width !== size || canvas.height !== high) Object.assign(canvas, {width: size, height: high});
  if (sized.lit.width !== size || sized.lit.height !== high) enlarge(dots, sized, size, high);
  const context = contextOf(canvas);
  Object.assign(context, {globalCompositeOperation: "copy", globalAlpha: 1});
  if (weights === null) {
    context.drawImage(sized.lit, 0, 0);
    return;
  }
  paintVeil(veil, weights, patches, smooth);
  // The veil, then the dark picture where it is, then the lit one beneath both.
  Object.assign(context, {globalAlpha: strength / 100, imageSmoothingEnabled: smooth});
  context.drawImage(veil, 0, 0, size, high);
  Object.assign(context, {globalCompositeOperation: "source-in", globalAlpha: 1});
  context.drawImage(sized.dark, 0, 0);
  context.globalCompositeOperation = "destination-over";
  context.drawImage(sized.lit, 0, 0);
  context.globalCompositeOperation = "source-over";
  const contour = new Path2D();
  for (const [fromX, fromY, toX, toY] of contourOf(weights, patches, smooth)) {
    contour.moveTo(fromX * size, fromY * high);
    contour.lineTo(toX * size, toY * high);
  }
  for (const {strokeStyle, lineWidth} of CONTOUR) {
    Object.assign(context, {strokeStyle, lineWidth: lineWidth * ratio, lineCap: "round"});
    context.stroke(contour);
  }
}

/** @param {Dots} dots @param {Dots} sized @param {number} width @param {number} height */
function enlarge(dots, sized, width, height) {
  for (const which of /** @type {(keyof Dots)[]} */ (["lit", "dark"])) {
    Object.assign(sized[which], {width, height});
    contextOf(sized[which]).drawImage(dots[which], 0, 0, width, height);
  }
}

/** @param {HTMLCanvasElement} veil @param {Float32Array} weights @param {{down: number, across: number}} patches
 * @param {boolean} smooth */
function paintVeil(veil, weights, patches, smooth) {
  const size = smooth ? SMOOTH : Math.max(patches.down, patches.across);
  if (veil.width !== size) Object.assign(veil, {width: size, height: size});
  const image = new ImageData(size, size);
  const alphas = veilOf(weights, patches, size, smooth);
  const {data} = image;
  for (let at = 0; at < alphas.length; at++) data[4 * at + 3] = alphas[at];
  contextOf(veil).putImageData(image, 0, 0);
}
