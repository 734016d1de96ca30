// A head in small: its weights over the patches, as colours on the ramp, to the head's own largest weight.

import {element, fitCanvas} from "../parts/element.js";
import {channels, onRamp, pixel} from "../data/scale.js";
import {lineOf, overPatches} from "./patches.js";

/** @import {View} from "../parts/view.js"
 * @import {Picture} from "../data/recording.js"
 * @import {Patches} from "./patches.js"
 * @import {Layout} from "../heads/layout.js" */

const SHADES = 64;

/** Draw what a chosen position looks at in a head.
 * @param {Pick<View, "store" | "now" | "colours">} view @param {Patches} patches @param {HTMLCanvasElement} canvas
 * @param {Picture} head @param {number} chosen @param {Pick<Layout, "width" | "height">} layout */
export function paintTile(view, patches, canvas, head, chosen, {width, height}) {
  if (!("at" in head)) return;
  const {store, now, colours} = view;
  const weights = overPatches(lineOf(head, chosen, now.stream.keys.count, store.state.direction), patches);
  const context = fitCanvas(canvas, width, height);
  const [side, down] = [
    Math.min(width, (height * patches.across) / patches.down),
    Math.min(height, (width * patches.down) / patches.across),
  ];
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, width, height);
  context.imageSmoothingEnabled = false;
  context.drawImage(sheetOf(weights, patches, colours.rampText), (width - side) / 2, (height - down) / 2, side, down);
}

/** @param {Float32Array} weights @param {Patches} patches @param {string[]} ramp */
function sheetOf(weights, {down, across}, ramp) {
  const most = weights.reduce((so, weight) => Math.max(so, weight), 0) || 1;
  const table = shadesOf(ramp);
  const image = new ImageData(across, down);
  const dots = new Uint32Array(image.data.buffer);
  weights.forEach((weight, at) => {
    dots[at] = table[Math.round((SHADES * weight) / most)];
  });
  lastSheet ??= element("canvas", {});
  if (lastSheet.width !== across || lastSheet.height !== down) Object.assign(lastSheet, {width: across, height: down});
  const context = /** @type {CanvasRenderingContext2D} */ (lastSheet.getContext("2d"));
  context.putImageData(image, 0, 0);
  return lastSheet;
}

// One for all heads: making a canvas for each takes longer than painting them.
/** @type {HTMLCanvasElement | null} */
let lastSheet = null;

/** @type {{of: string[], table: Uint32Array}} */
let lastRamp = {of: [], table: new Uint32Array(0)};

/** @param {string[]} ramp */
function shadesOf(ramp) {
  if (lastRamp.of !== ramp) {
    const colours = ramp.map(channels);
    lastRamp = {
      of: ramp,
      table: Uint32Array.from({length: SHADES + 1}, (_, at) => pixel(onRamp(colours, at / SHADES))),
    };
  }
  return lastRamp.table;
}
