// The picture with the weights of a chosen patch laid over it.

import {readPlane} from "../data/payload.js";
import {element} from "../parts/element.js";
import {hasAny} from "../data/store.js";
import {chosenPosition, pinPatch, saidOfPicture, walkPatches} from "./chosen.js";
import {placeMarks} from "./marks.js";
import {paintOverlay, sheetsOf} from "./overlay.js";
import {SHOWN_ROW, lineOf, overPatches} from "./patches.js";
import {createTools} from "./tools.js";

/** @import {Part} from "../parts/view.js"
 * @import {PackedPicture} from "../data/payload.js"
 * @import {StageView} from "./chosen.js"
 * @import {Sheets} from "./overlay.js"
 * @import {Patches} from "./patches.js" */

/** The picture, and what is chosen of it.
 * @param {StageView} view @param {Patches} patches @param {PackedPicture} packed @returns {Part} */
export function createStage(view, patches, packed) {
  const canvas = element("canvas", {role: "img", tabindex: "0", "data-testid": "picture"});
  const marks = element("div", {class: "av-picture-marks", "aria-hidden": "true"});
  const frame = element("div", {class: "av-picture-frame"}, canvas, marks);
  const {tools, select} = createTools(view, patches);
  const caption = element("p", {class: "av-quiet av-picture-told"});
  const node = element("section", {class: "av-picture", "aria-label": "Image"}, tools, frame, caption);
  /** @type {Uint8Array | null} */
  let dots = null;
  /** @type {{theme: number, sheets: Sheets} | null} */
  let drawn = null;
  // Asking for it at each patch would have the page laid out for the answer.
  let side = 0;
  new ResizeObserver(() => {
    if (side !== 0 && side !== frame.clientWidth) view.resized();
  }).observe(frame);
  readPlane(view.recording.payload, packed.at).then((plane) => {
    dots = plane;
    view.store.set({loaded: view.store.state.loaded + 1});
  });
  listenToPicture(view, canvas, patches);
  return {
    node,
    draw(changed) {
      if (!hasAny(changed, ...SHOWN_ROW, "theme", "size", "direction", "smooth", "strength")) return;
      select();
      if (dots === null) return;
      const {theme} = view.store.state;
      if (drawn?.theme !== theme) drawn = {theme, sheets: sheetsOf(view, dots, packed)};
      if (side === 0 || hasAny(changed, "size")) side = frame.clientWidth;
      paintOverlay(view, canvas, drawn.sheets, patches, side || 320);
      placeMarks(view, marks, patches);
      caption.textContent = captionOf(view, patches);
      canvas.setAttribute("aria-label", (saidOfPicture(view, patches) ?? []).map(([text]) => text).join("") || "Image");
    },
  };
}

/** @param {StageView} view @param {Patches} patches */
function captionOf({now, store}, patches) {
  if (now.head === null) return "Loading the layer …";
  const line = lineOf(now.head, chosenPosition({now, store}), now.stream.keys.count, store.state.direction);
  const most = overPatches(line, patches).reduce((so, weight) => Math.max(so, weight), 0);
  const sum = store.state.direction === "to" ? " A column doesn’t sum to 1." : "";
  return `Full colour: ${most.toFixed(3)}, the largest weight. Grey: 0.${sum} “Patch 3, 5” is row 3, column 5, counted from 0. Arrow keys move, Enter keeps.`;
}

/** @param {StageView} view @param {HTMLCanvasElement} canvas @param {Patches} patches */
function listenToPicture(view, canvas, patches) {
  const {down, across, positions} = patches;
  const at = (/** @type {MouseEvent} */ {clientX, clientY}) => {
    const {left, top, width, height} = canvas.getBoundingClientRect();
    const inside = (/** @type {number} */ place, /** @type {number} */ count) =>
      Math.min(count - 1, Math.max(0, Math.floor(place * count)));
    return positions[inside((clientY - top) / height, down) * across + inside((clientX - left) / width, across)];
  };
  canvas.onpointermove = (event) => {
    if (event.pointerType === "mouse") view.point({query: at(event), key: null});
  };
  canvas.onpointerleave = () => view.point({query: null, key: null});
  canvas.onclick = (event) => pinPatch(view, at(event));
  canvas.onkeydown = (event) => walkPatches(view, patches, event);
}
