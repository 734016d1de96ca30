// The weights of a chosen patch laid over a picture: in full colour where they are, grey and veiled where not.

import {element} from "../parts/element.js";
import {chosenPosition} from "./chosen.js";
import {lineOf, overPatches} from "./patches.js";
import {veilOf} from "./veil.js";

/**
 * @import {PackedPicture} from "../data/payload.js"
 * @import {StageView} from "./chosen.js"
 * @import {Patches} from "./patches.js"
 */

/**
 * The picture's dots: in colour, and in grey under a veil of the page's colour; and what is painted on anew for each
 * patch, kept since making it takes longer than painting.
 * @typedef {{colour: HTMLCanvasElement, veiled: HTMLCanvasElement, over: HTMLCanvasElement, veil: HTMLCanvasElement}} Sheets
 */

// How many dots the veil has where it is smooth; where it isn't, a dot a patch.
const SMOOTH = 208;
const [VEIL_LIGHT, VEIL_DARK] = [0.62, 0.72];

/**
 * @param {StageView} view
 * @param {Uint8Array} dots
 * @param {PackedPicture} packed
 * @returns {Sheets}
 */
export function sheetsOf(view, dots, {rows, columns}) {
  const [colour, veiled] = [canvasOf(columns, rows), canvasOf(columns, rows)];
  const dark = view.root.dataset["theme"] === "dark";
  const ground = dark ? [8, 9, 14] : [255, 255, 255];
  const veil = dark ? VEIL_DARK : VEIL_LIGHT;
  const [plain, grey] = [new ImageData(columns, rows), new ImageData(columns, rows)];
  for (let at = 0; at < rows * columns; at++) {
    const [red, green, blue] = [dots[3 * at], dots[3 * at + 1], dots[3 * at + 2]];
    const light = 0.299 * red + 0.587 * green + 0.114 * blue;
    plain.data.set([red, green, blue, 255], 4 * at);
    grey.data.set([...ground.map((one) => one * veil + light * (1 - veil)), 255], 4 * at);
  }
  contextOf(colour).putImageData(plain, 0, 0);
  contextOf(veiled).putImageData(grey, 0, 0);
  return {colour, veiled, over: canvasOf(0, 0), veil: canvasOf(0, 0)};
}

/**
 * @param {number} width
 * @param {number} height
 */
function canvasOf(width, height) {
  return element("canvas", {width, height});
}

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/**
 * Draw the picture, and the veil over it where the weights aren't.
 * @param {StageView} view
 * @param {HTMLCanvasElement} canvas
 * @param {Sheets} sheets
 * @param {Patches} patches
 * @param {number} side
 */
export function paintOverlay(view, canvas, {colour, veiled, over, veil}, patches, side) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const size = Math.round(side * ratio);
  const high = Math.round((size * colour.height) / colour.width);
  for (const one of [canvas, over])
    if (one.width !== size || one.height !== high) Object.assign(one, {width: size, height: high});
  const context = contextOf(canvas);
  context.globalAlpha = 1;
  context.drawImage(colour, 0, 0, size, high);
  const {head, stream} = view.now;
  if (head === null) return;
  const {smooth, strength, direction} = view.store.state;
  const weights = overPatches(lineOf(head, chosenPosition(view), stream.keys.count, direction), patches);
  const own = contextOf(over);
  Object.assign(own, {globalCompositeOperation: "copy", imageSmoothingEnabled: true});
  own.drawImage(veiled, 0, 0, size, high);
  paintVeil(veil, weights, patches, smooth);
  Object.assign(own, {globalCompositeOperation: "destination-in", imageSmoothingEnabled: smooth});
  own.drawImage(veil, 0, 0, size, high);
  context.globalAlpha = strength / 100;
  context.drawImage(over, 0, 0);
}

/**
 * @param {HTMLCanvasElement} veil
 * @param {Float32Array} weights
 * @param {Patches} patches
 * @param {boolean} smooth
 */
function paintVeil(veil, weights, patches, smooth) {
  const size = smooth ? SMOOTH : Math.max(patches.down, patches.across);
  if (veil.width !== size) Object.assign(veil, {width: size, height: size});
  const image = new ImageData(size, size);
  const alphas = veilOf(weights, patches, size, smooth);
  for (let at = 0; at < alphas.length; at++) image.data[4 * at + 3] = alphas[at];
  contextOf(veil).putImageData(image, 0, 0);
}
