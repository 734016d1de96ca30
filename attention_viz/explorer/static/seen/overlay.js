// The weights of a chosen patch laid over a picture.

import {lightLine} from "./chosen.js";
import {paintLit} from "./lit.js";

/** @import {StageView} from "./chosen.js"
 * @import {Sheets} from "./lit.js"
 * @import {Patches} from "./patches.js" */

/** Draw the chosen patch's weights over the picture.
 * @param {StageView} view @param {HTMLCanvasElement} canvas @param {Sheets} sheets @param {Patches} patches
 * @param {number} side */
export function paintOverlay(view, canvas, sheets, patches, side) {
  const weights = view.now.head === null ? null : lightLine(view, patches);
  const {smooth, strength} = view.store.state;
  paintLit(canvas, sheets, weights, patches, {side, smooth, strength});
}
