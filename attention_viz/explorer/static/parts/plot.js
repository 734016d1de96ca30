// Where any matrix lies in its canvas, and what is painted of it: cells, strokes over blocked ones, lines, numbers, frames.

import {fitCanvas} from "./element.js";
import {inkOn, rgb} from "../data/scale.js";

/** @import {MatrixView} from "./matrix.js"
 * @import {Places} from "../data/head.js"
 * @import {Colour} from "../data/scale.js"
 * @import {Axis} from "../data/tokens.js"
 * @import {Viewport} from "../data/viewport.js" */

/** @typedef {{width: number, height: number}} Size */

/** Where a matrix lies in its canvas, in CSS pixels: its first cell, the size of all cells, and how many rows and columns
 * there are; `lying` is whether the labels of the columns are, as those of the rows.
 * @typedef {Size & {left: number, top: number, down: number, across: number, cell: Size, lying: boolean,
 *   window: Viewport}} Plot */

/** @typedef {"row" | "column"} Side */

const MOST_LABEL = {row: 92, column: 78};
// How high a line of labels is.
export const LABEL_LINE = 12;
// The least a cell needs for a number in small figures; larger ones from `roomy`, and from `large`.
export const NUMBER = {width: 24, height: 12, roomy: 27, large: 64};
const LARGEST_CELL = {usual: 72, alone: 240};
// How much wider than high a cell may be where a text is short.
const BROADEST_CELL = 1.6;
const MOST_MEASURED = 600;

/** Where everything lies for a window on the matrix and the room there is.
 * @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Viewport} window @param {number} width
 * @param {number} height
 * @param {boolean} [alone]  on the screen
 * @returns {Plot} */
export function layMatrix(context, view, window, width, height, alone = false) {
  const {stream, rows, columns} = view.now;
  context.font = view.fonts.small;
  const {size} = view.fonts;
  const [left, tall] = [
    Math.ceil(Math.min(MOST_LABEL.row * size, widest(context, stream.queries, rows))) + 10,
    Math.ceil(Math.min(MOST_LABEL.column * size, widest(context, stream.keys, columns))),
  ];
  const upright = cellSize(window, width - left, height - tall - 10, alone);
  const flat = cellSize(window, width - left, height - LABEL_LINE * size - 10, alone);
  const lying = tall <= flat.width - 6;
  const cell = lying ? flat : upright;
  const top = (lying ? LABEL_LINE * size : tall) + 10;
  const [down, across] = [window.bottom - window.top, window.right - window.left];
  return {
    left,
    top,
    lying,
    cell,
    window,
    width: Math.round(cell.width * across),
    height: Math.round(cell.height * down),
    down,
    across,
  };
}

/** How wide the widest label is; of very many, a sample of them is measured.
 * @param {CanvasRenderingContext2D} context @param {Axis} axis @param {Places} places */
function widest(context, axis, places) {
  const step = Math.ceil(places.length / MOST_MEASURED);
  const some = step > 1 ? places.filter((_, at) => at % step === 0) : places;
  return Math.max(...Array.from(some, (place) => context.measureText(axis.numbered[place]).width));
}

/** @param {Viewport} window @param {number} width @param {number} height @param {boolean} alone @returns {Size} */
function cellSize(window, width, height, alone) {
  const largest = alone ? LARGEST_CELL.alone : LARGEST_CELL.usual;
  const across = Math.min(width / (window.right - window.left), largest);
  const down = Math.min(height / (window.bottom - window.top), largest);
  const square = Math.min(across, down);
  if (square >= 6) return {width: Math.min(across, BROADEST_CELL * square), height: square};
  return window.rows === window.columns ? {width: square, height: square} : {width: across, height: down};
}

/** Where the n-th row or column of the window begins, so that neighbours share an edge.
 * @param {number} index @param {number} count @param {number} size */
export function edgeOf(index, count, size) {
  return Math.round((index * size) / count);
}

/** The middle of a row or column, from the beginning of the matrix.
 * @param {Pick<Plot, "width" | "height" | "down" | "across">} plot @param {Side} side @param {number} index */
export function middleOf(plot, side, index) {
  const [count, size] = side === "row" ? [plot.down, plot.height] : [plot.across, plot.width];
  return (edgeOf(index, count, size) + edgeOf(index + 1, count, size)) / 2;
}

/** The row and the column under a pointer, or null beside the cells.
 * @param {Frame} frame
 * @param {Element} stage  that it lies in
 * @param {{clientX: number, clientY: number}} point */
export function cellUnder({left, top, width, height, down, across}, stage, {clientX, clientY}) {
  const box = stage.getBoundingClientRect();
  const [x, y] = [clientX - box.left - left, clientY - box.top - top];
  if (x < 0 || y < 0 || x >= width || y >= height) return null;
  return {row: Math.floor((y * down) / height), column: Math.floor((x * across) / width)};
}

/** Where cells lie. @typedef {Omit<Plot, "cell" | "lying" | "window">} Frame */

/** A pixel a cell, row by row.
 * @param {Pick<Frame, "down" | "across">} frame @param {(at: number) => number} colourOf */
export function cellImage({down, across}, colourOf) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, {width: across, height: down});
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const data = context.createImageData(across, down);
  const pixels = new Uint32Array(data.data.buffer);
  for (let at = 0; at < pixels.length; at++) pixels[at] = colourOf(at);
  context.putImageData(data, 0, 0);
  return canvas;
}

/** Strokes over the cells that aren't open.
 * @param {CanvasRenderingContext2D} context @param {Frame} frame @param {Uint8Array} open @param {string} colour
 * @param {number} strength */
export function hatchCells(context, frame, open, colour, strength) {
  if (!open.includes(0)) return;
  const {left, top, width, height} = frame;
  const layer = document.createElement("canvas");
  const over = fitCanvas(layer, width, height);
  Object.assign(over, {strokeStyle: colour, lineWidth: 1.4});
  over.beginPath();
  for (let from = -height; from < width; from += 6) {
    over.moveTo(from, height);
    over.lineTo(from + height, 0);
  }
  over.stroke();
  Object.assign(over, {globalCompositeOperation: "destination-in", imageSmoothingEnabled: false});
  const shut = cellImage(frame, (at) => (open[at] ? 0 : 0xff000000));
  over.drawImage(shut, 0, 0, width, height);
  context.save();
  context.globalAlpha = strength;
  context.drawImage(layer, left, top, width, height);
  context.restore();
}

/** Lines between the cells.
 * @param {CanvasRenderingContext2D} context @param {Frame} frame @param {string} colour @param {number} thick */
export function ruleCells(context, {left, top, width, height, down, across}, colour, thick = 0.5) {
  context.fillStyle = colour;
  for (let row = 1; row < down; row++) context.fillRect(left, top + edgeOf(row, down, height) - 0.5, width, thick);
  for (let column = 1; column < across; column++)
    context.fillRect(left + edgeOf(column, across, width) - 0.5, top, thick, height);
}

/** Numbers in the cells, as black or white as can be read there; `plate` covers the strokes below one.
 * @param {CanvasRenderingContext2D} context @param {Frame} frame @param {string} font
 * @param {(row: number, column: number) => {text: string, colour: Colour, plate?: boolean} | null} numberAt */
export function writeNumbers(context, frame, font, numberAt) {
  Object.assign(context, {font, textAlign: "center", textBaseline: "middle"});
  for (let row = 0; row < frame.down; row++)
    for (let column = 0; column < frame.across; column++) {
      const number = numberAt(row, column);
      if (!number) continue;
      const [x, y] = [frame.left + middleOf(frame, "column", column), frame.top + middleOf(frame, "row", row)];
      if (number.plate) {
        // Inside its cell.
        const wide = Math.min(context.measureText(number.text).width + 6, frame.width / frame.across - 3);
        const high = Math.min(18, frame.height / frame.down - 3);
        context.fillStyle = rgb(number.colour);
        context.fillRect(x - wide / 2, y - high / 2, wide, high);
      }
      context.fillStyle = inkOn(number.colour);
      context.fillText(number.text, x, y + 0.5);
    }
}

/** Frame a cell, or a whole row or column, the other being null; one that isn't there has no frame.
 * @param {CanvasRenderingContext2D} context @param {Frame} frame
 * @param {{row: number | null, column: number | null}} which @param {string} colour
 * @param {number} line  how thick it is */
export function frameCells(context, {left, top, width, height, down, across}, {row, column}, colour, line) {
  const [x, y] = [framed(column, across, width), framed(row, down, height)];
  if (!x || !y) return;
  Object.assign(context, {strokeStyle: colour, lineWidth: line});
  context.strokeRect(left + x.from, top + y.from, x.long, y.long);
}

/** From where to where a frame goes; around thin cells it keeps its distance, so as not to cover them.
 * @param {number | null} index @param {number} count @param {number} size */
function framed(index, count, size) {
  if (index === null) return {from: -1, long: size + 2};
  if (index < 0 || index >= count) return null;
  const [start, end] = [edgeOf(index, count, size), edgeOf(index + 1, count, size)];
  const distance = end - start < 5 ? 2.5 : 0.5;
  return {from: start - distance, long: end - start + 2 * distance};
}
