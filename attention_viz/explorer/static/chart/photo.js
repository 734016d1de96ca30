// A photo lit by weights over its patches: a contour at half of the largest, a frame around the patch that attends.

import {numbersAt, readPlane} from "../data/payload.js";
import {element} from "../parts/element.js";
import {paintLit, sheetsOf} from "../seen/lit.js";

/** @import {PackedPicture, Payload, Place} from "../data/payload.js"
 * @import {Sheets} from "../seen/lit.js"
 * @import {Drawing} from "./chart.js" */

/** What stands before a photo, as `pack_lit` in chart_payload.py writes it; `patch` is the framed one, -1 for none.
 * @typedef {PackedPicture & {kind: "photo", down: number, across: number, patch: number, words: string,
 *   weights: Place}} PhotoHeader */

/** @typedef {{sheets: Sheets, weights: Float32Array, down: number, across: number, patch: number}} Lit */

// How wide it is at most, in pixels.
const WIDEST = 340;

/** @param {HTMLElement} root @returns {Drawing} */
export function createLitPhoto(root) {
  /** @type {Lit | null} */
  let lit = null;
  return {
    async load(/** @type {Payload<PhotoHeader>} */ payload) {
      const {header} = payload;
      const weights = numbersAt(payload, header.weights, Float32Array);
      const dots = await readPlane(payload, header.at);
      lit = {...header, sheets: sheetsOf({rows: header.rows, columns: header.columns, dots}), weights};
      Object.assign(root, {role: "img", ariaLabel: header.words});
      drawLitPhoto(root, lit);
    },
    draw: () => lit && drawLitPhoto(root, lit),
  };
}

/** Draw it as wide as its element, up to a limit. @param {HTMLElement} root @param {Lit} lit */
export function drawLitPhoto(root, {sheets, weights, down, across, patch}) {
  const side = Math.min(WIDEST, root.clientWidth);
  if (side === 0) return;
  const canvas = element("canvas", {"aria-hidden": "true"});
  paintLit(canvas, sheets, weights, {down, across}, {side});
  canvas.style.width = `${side}px`;
  const frame = element("i", {hidden: patch < 0 ? "" : null});
  const part = (/** @type {number} */ share) => `${100 * share}%`;
  const [top, left] = [Math.floor(patch / across) / down, (patch % across) / across];
  Object.assign(frame.style, {top: part(top), left: part(left), height: part(1 / down), width: part(1 / across)});
  root.replaceChildren(element("div", {class: "av-lit"}, canvas, frame));
}
