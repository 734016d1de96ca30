// The picture lit by the weights of a chosen patch.

import {element} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {hasAny} from "../data/store.js";
import {lightLine, lookedAt, pinPatch, pointing, saidOfPicture, walkPatches} from "./chosen.js";
import {placeMarks} from "./marks.js";
import {sheetsOf} from "./lit.js";
import {paintOverlay} from "./overlay.js";
import {SHOWN_ROW} from "./patches.js";
import {createTools} from "./tools.js";

/** @import {Part} from "../parts/view.js"
 * @import {Photo} from "./tiles.js"
 * @import {StageView} from "./chosen.js"
 * @import {Sheets} from "./lit.js"
 * @import {Patches} from "./patches.js" */

const SLOT = "The class token is a summary slot without a place in the image.";

/** The picture, and what is chosen of it.
 * @param {StageView} view @param {Patches} patches @param {() => Photo | null} read  the photo, once it is there
 * @returns {Part} */
export function createStage(view, patches, read) {
  const canvas = element("canvas", {role: "img", tabindex: "0", "data-testid": "picture"});
  const marks = element("div", {class: "av-picture-marks", "aria-hidden": "true"});
  const frame = element("div", {class: "av-picture-frame"}, canvas, ...panelNames(patches), marks);
  const {tools, shading, select} = createTools(view, patches);
  const caption = element("p", {class: "av-quiet av-picture-told"});
  const node = element("section", {class: "av-picture", "aria-label": "Image"}, tools, frame, shading, caption);
  /** @type {Sheets | null} */
  let sheets = null;
  // Asking for it at each patch would have the page laid out for the answer.
  let side = 0;
  new ResizeObserver(() => {
    if (side !== 0 && side !== frame.clientWidth) view.resized();
  }).observe(frame);
  listenToPicture(view, canvas, patches);
  return {
    node,
    draw(changed) {
      if (!hasAny(changed, ...SHOWN_ROW, "overKey", "size", "direction", "smooth", "strength")) return;
      select();
      const photo = read();
      if (photo === null) return;
      sheets ??= sheetsOf(photo);
      if (side === 0 || hasAny(changed, "size")) side = frame.clientWidth;
      paintOverlay(view, canvas, sheets, patches, side || 320);
      placeMarks(view, marks, patches);
      caption.textContent = captionOf(view, patches);
      canvas.setAttribute("aria-label", (saidOfPicture(view, patches) ?? []).map(([text]) => text).join("") || "Image");
    },
  };
}

/** The name at the corner of each image of a sheet, such as a frame's time. @param {Patches} patches */
function panelNames({sheet, down, across}) {
  if (!sheet) return [];
  return sheet.panels.map(({name, row, column}) => {
    const node = element("span", {class: "av-panel-name"}, name);
    node.style.top = `${(100 * row) / down}%`;
    node.style.left = `${(100 * column) / across}%`;
    return node;
  });
}

/** @param {StageView} view @param {Patches} patches */
function captionOf({now, store}, patches) {
  if (now.head === null) return "Loading the layer …";
  if (lookedAt({now, store}, patches).direction === "to" && patches.joint)
    return "The lit region is the key. The words’ numbers are its column, which doesn’t sum to 1.";
  const most = lightLine({now, store}, patches).reduce((so, weight) => Math.max(so, weight), 0);
  const sum = store.state.direction === "to" && !patches.joint ? " A column doesn’t sum to 1." : "";
  const slot = now.stream.keys.labels.includes("[CLS]") ? ` ${SLOT}` : "";
  const frames = patches.sheet?.together ? " The model reads some frames together; of these you see the first." : "";
  return `Light is weight: a fully lit patch has ${weightText(most)}, the most here; a dark one 0. The violet line is at half of that.${sum}${slot}${frames} Arrow keys move, Enter keeps.`;
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
  const nothing = () => view.point({query: null, key: null});
  canvas.onpointermove = (event) => {
    if (event.pointerType !== "mouse") return;
    const position = at(event);
    if (position < 0) nothing();
    else view.point(pointing(position, patches.joint));
  };
  canvas.onpointerleave = nothing;
  canvas.onclick = (event) => {
    const position = at(event);
    if (position >= 0) pinPatch(view, patches, position);
  };
  canvas.onkeydown = (event) => walkPatches(view, patches, event);
}
