// The weights of a chosen patch laid over a picture: in full colour where they are, grey and veiled where not.

import {element} from "../parts/element.js";
import {chosenPosition} from "./chosen.js";
import {lineOf, overPatches} from "./patches.js";
import {veilOf} from "./veil.js";

/** @import {PackedPicture} from "../data/payload.js"
 * @import {StageView} from "./chosen.js"
 * @import {Patches} from "./patches.js" */

/** The picture's dots: in colour, and in grey under a veil of the page's colour. @typedef {{colour: HTMLCanvasElement, veiled: HTMLCanvasElement}} Dots */

/** The dots as they came; as large as the picture is on the screen, since making them so takes longer than laying one
 * over the other; and the veil, which is painted anew for each patch.
 * @typedef {{dots: Dots, sized: Dots, veil: HTMLCanvasElement}} Sheets */

// How many dots the veil has where it is smooth; where it isn't, a dot a patch.
const SMOOTH = 208;
const [VEIL_LIGHT, VEIL_DARK] = [0.62, 0.72];

/** @param {StageView} view @param {Uint8Array} dots @param {PackedPicture} packed @returns {Sheets} */
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
  return {dots: {colour, veiled}, sized: {colour: canvasOf(0, 0), veiled: canvasOf(0, 0)}, veil: canvasOf(0, 0)};
}

/** @param {number} width @param {number} height */
function canvasOf(width, height) {
  return element("canvas", {width, height});
}

/** @param {HTMLCanvasElement} canvas */
function contextOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/** Draw the picture, and the veil over it where the weights aren't.
 * @param {StageView} view @param {HTMLCanvasElement} canvas @param {Sheets} sheets @param {Patches} patches
 * @param {number} side */
export function paintOverlay(view, canvas, {dots, sized, veil}, patches, side) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const size = Math.round(side * ratio);
  const high = Math.round((size * dots.colour.height) / dots.colour.width);
  if (canvas.width !== size || canvas.height !== high) Object.assign(canvas, {width: size, height: high});
  if (sized.colour.width !== size || sized.colour.height !== high) enlarge(dots, sized, size, high);
  const context = contextOf(canvas);
  Object.assign(context, {globalCompositeOperation: "copy", globalAlpha: 1});
  const {head, stream} = view.now;
  if (head === null) {
    context.drawImage(sized.colour, 0, 0);
    return;
  }
  const {smooth, strength, direction} = view.store.state;
  const weights = overPatches(lineOf(head, chosenPosition(view), stream.keys.count, direction), patches);
  paintVeil(veil, weights, patches, smooth);
  // The veil, then the grey picture where it is, then the colours beneath both.
  Object.assign(context, {globalAlpha: strength / 100, imageSmoothingEnabled: smooth});
  context.drawImage(veil, 0, 0, size, high);
  Object.assign(context, {globalCompositeOperation: "source-in", globalAlpha: 1});
  context.drawImage(sized.veiled, 0, 0);
  context.globalCompositeOperation = "destination-over";
  context.drawImage(sized.colour, 0, 0);
}

/** @param {Dots} dots @param {Dots} sized @param {number} width @param {number} height */
function enlarge(dots, sized, width, height) {
  for (const which of /** @type {(keyof Dots)[]} */ (["colour", "veiled"])) {
    Object.assign(sized[which], {width, height});
    contextOf(sized[which]).drawImage(dots[which], 0, 0, width, height);
  }
}

/** @param {HTMLCanvasElement} veil @param {Float32Array} weights @param {Patches} patches @param {boolean} smooth */
function paintVeil(veil, weights, patches, smooth) {
  const size = smooth ? SMOOTH : Math.max(patches.down, patches.across);
  if (veil.width !== size) Object.assign(veil, {width: size, height: size});
  const image = new ImageData(size, size);
  const alphas = veilOf(weights, patches, size, smooth);
  for (let at = 0; at < alphas.length; at++) image.data[4 * at + 3] = alphas[at];
  contextOf(veil).putImageData(image, 0, 0);
}
