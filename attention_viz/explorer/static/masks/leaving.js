// Cells that a mask has just blocked leave the matrix, as they were drawn before. None does if the system asks for less
// motion.

import {element, fitCanvas} from "../parts/element.js";
import {edgeOf} from "../parts/plot.js";

/** @import {Matrices} from "./board.js"
 * @import {Cells} from "./rules.js"
 * @import {Sheet} from "./sheet.js" */

/** What was open in the matrix that was drawn last; `of` names its head, `built` its run.
 * @typedef {{of: string, built: Sheet["built"], open: Cells}} Opening */

// How long it takes, in milliseconds.
const LEAVE = 180;

/** Let the cells that were open when the sheet was drawn last, and aren't now, leave. The sheet must still show them.
 * @param {Sheet} sheet @param {Matrices} matrices */
export function leaveSheet(sheet, {layer, head, open}) {
  const {opening: before, built} = sheet;
  sheet.opening = {of: `${layer} ${head}`, built, open: open.slice()};
  if (before?.of !== sheet.opening.of || before.built !== built) return;
  const gone = [...open.keys()].filter((at) => before.open[at] && !open[at]);
  if (!gone.length || window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const ghost = pictureOf(sheet, gone);
  sheet.canvas.after(ghost);
  const timing = {duration: LEAVE, easing: "ease-out"};
  const leaving = ghost.animate([{opacity: 1}, {opacity: 0, transform: "translateY(-12px)"}], timing);
  leaving.onfinish = () => ghost.remove();
}

/** Some cells as they are drawn now, and nothing else. @param {Sheet} sheet @param {number[]} cells */
function pictureOf({canvas, frame}, cells) {
  const {left, top, width, height, down, across} = frame;
  const picture = element("canvas", {"aria-hidden": "true", class: "av-leaving"});
  const context = fitCanvas(picture, left + width, top + height);
  context.beginPath();
  for (const at of cells) {
    const [row, column] = [Math.floor(at / across), at % across];
    const [x, y] = [edgeOf(column, across, width), edgeOf(row, down, height)];
    context.rect(left + x, top + y, edgeOf(column + 1, across, width) - x, edgeOf(row + 1, down, height) - y);
  }
  context.clip();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(canvas, 0, 0);
  return picture;
}
