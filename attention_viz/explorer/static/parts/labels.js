// The tokens beside a matrix: rows to the left, columns above.

import {element} from "./element.js";
import {LABEL_LINE, middleOf} from "./plot.js";

/** @import {MatrixView} from "./matrix.js"
 * @import {Plot, Side} from "./plot.js"
 * @import {Places} from "../data/head.js"
 * @import {Axis} from "../data/tokens.js" */

// The least a label needs beside its neighbour.
const LABEL_PITCH = 10.5;

/** @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Plot} plot @param {Places} rows
 * @param {Places} columns */
export function paintLabels(context, view, plot, rows, columns) {
  const {stream} = view.now;
  rows.forEach((query, down) => {
    if (down % labelStep(plot, "row", view.fonts.size) === 0)
      paintLabel(context, view, plot, "row", down, stream.queries, query, false);
  });
  columns.forEach((key, across) => {
    if (across % labelStep(plot, "column", view.fonts.size) === 0)
      paintLabel(context, view, plot, "column", across, stream.keys, key, false);
  });
}

/** Write one row's or column's label; a marked one in the colour of its role, over whatever labels lie below it.
 * @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Plot} plot @param {Side} side
 * @param {number} index @param {Axis} axis @param {number} place @param {boolean} marked */
export function paintLabel(context, view, plot, side, index, axis, place, marked) {
  const {colours} = view;
  const lying = side === "row" || plot.lying;
  if (marked) coverNeighbours(context, view, plot, side, index);
  const room = side === "row" ? plot.left - 10 : plot.lying ? plot.cell.width - 4 : plot.top - 10;
  context.save();
  context.font = marked ? view.fonts.strong : view.fonts.small;
  const text = shortened(context, axis.numbered[place], Math.max(room, 8));
  if (side === "row") context.translate(plot.left - 7, plot.top + middleOf(plot, side, index));
  else context.translate(plot.left + middleOf(plot, side, index), plot.top - 7);
  if (!lying) context.rotate(-Math.PI / 2);
  const centred = side === "column" && plot.lying;
  context.textAlign = centred ? "center" : side === "row" ? "right" : "left";
  context.textBaseline = centred ? "alphabetic" : "middle";
  context.fillStyle = marked
    ? side === "row"
      ? colours.query
      : colours.key
    : axis.dimmed[place]
      ? colours.muted
      : colours.ink;
  context.fillText(text, 0, 0);
  context.restore();
}

/** Every how many rows or columns there is room for a label. @param {Plot} plot @param {Side} side @param {number} size */
function labelStep({cell, lying}, side, size) {
  if (side === "column" && lying) return 1;
  return Math.max(1, Math.ceil((LABEL_PITCH * size) / (side === "row" ? cell.height : cell.width)));
}

/** Cover the labels that a marked one would lie over.
 * @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Plot} plot @param {Side} side
 * @param {number} index */
function coverNeighbours(context, view, plot, side, index) {
  const {size} = view.fonts;
  const [step, middle, line] = [labelStep(plot, side, size), middleOf(plot, side, index), LABEL_LINE * size];
  const count = side === "row" ? plot.down : plot.across;
  context.fillStyle = view.colours.background;
  for (let other = Math.floor(index / step) * step; other < Math.min(count, index + step + 1); other += step) {
    const at = middleOf(plot, side, other);
    if (other !== index && Math.abs(at - middle) >= line) continue;
    if (side === "row") context.fillRect(0, plot.top + at - line / 2 - 1, plot.left - 4, line + 2);
    else if (plot.lying) context.fillRect(plot.left + at - plot.cell.width / 2, 0, plot.cell.width, plot.top - 4);
    else context.fillRect(plot.left + at - line / 2 - 1, 0, line + 2, plot.top - 4);
  }
}

/** A text cut to a width, with an ellipsis where something is missing.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} room */
export function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const last = nameEnd(text);
  const end = context.measureText(`\u2026${last}`).width < room ? last : "";
  const signs = [...text.slice(0, text.length - end.length)];
  const cut = (/** @type {number} */ count) => `${signs.slice(0, count).join("")}\u2026${end}`;
  let kept = Math.max(1, Math.floor((signs.length * room) / context.measureText(text).width));
  while (kept > 1 && context.measureText(cut(kept)).width > room) kept -= 1;
  // The end of what is isolated is cut off with the rest of it.
  const open = signs.slice(0, kept);
  const closing = !end && open.includes("\u2068") && !open.includes("\u2069") ? "\u2069" : "";
  return `${open.join("")}${closing}\u2026${end}`;
}

/** The number that a name such as "object query 3" ends in: it alone tells the name from the others, so it isn't cut.
 * @param {string} text */
function nameEnd(text) {
  return /\s\d[\d\u2013]*\u2069?$/u.exec(text)?.[0] ?? "";
}

/** A token's name; where it is cut, it keeps the number that it ends in. @param {string} text */
export function nameNode(text) {
  const end = nameEnd(text);
  if (!end) return element("bdi", {}, text);
  const start = element("span", {class: "av-start"}, text.slice(0, text.length - end.length));
  return element("bdi", {class: "av-ended"}, start, element("span", {}, end));
}
