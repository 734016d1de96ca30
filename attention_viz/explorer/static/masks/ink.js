// What is drawn on the sheet's canvas: cells, strokes over those that are blocked, lines, numbers and marks.

import {inkOn} from "../data/scale.js";
import {fitCanvas} from "../parts/element.js";

/** @import {Colour} from "../data/scale.js" */

/**
 * Where the cells stand on the sheet, in pixels.
 * @typedef {{left: number, top: number, width: number, height: number, cell: {width: number, height: number}}} Frame
 */

/**
 * What is drawn over the cells: the chosen pair, the row that is pointed at, and where the keyboard is.
 * @typedef {{pair: Cell | null, row: number | null, cursor: Cell | null}} Marks
 * @typedef {{query: number, key: number}} Cell
 */

/** @typedef {{ink: string, line: string, query: string, key: string, blocked: string, surface: string, ramp: Colour[],
 *   differences: Colour[], background: Colour}} SheetColours */

/**
 * A pixel a cell.
 * @param {number} rows
 * @param {number} columns
 * @param {(at: number) => number} colourOf
 */
export function cellImage(rows, columns, colourOf) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, {width: columns, height: rows});
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const data = context.createImageData(columns, rows);
  const pixels = new Uint32Array(data.data.buffer);
  for (let at = 0; at < pixels.length; at++) pixels[at] = colourOf(at);
  context.putImageData(data, 0, 0);
  return canvas;
}

/**
 * Strokes over the cells that are blocked.
 * @param {CanvasRenderingContext2D} context
 * @param {Frame} frame
 * @param {number} rows
 * @param {number} columns
 * @param {Uint8Array} open
 * @param {{colour: string, strength: number}} stroked
 */
export function hatchBlocked(context, {left, top, width, height}, rows, columns, open, {colour, strength}) {
  const layer = document.createElement("canvas");
  const over = fitCanvas(layer, width, height);
  over.strokeStyle = colour;
  over.lineWidth = 1.4;
  over.beginPath();
  for (let from = -height; from < width; from += 6) {
    over.moveTo(from, height);
    over.lineTo(from + height, 0);
  }
  over.stroke();
  over.globalCompositeOperation = "destination-in";
  over.imageSmoothingEnabled = false;
  over.drawImage(
    cellImage(rows, columns, (at) => (open[at] ? 0 : 0xff000000)),
    0,
    0,
    width,
    height,
  );
  context.save();
  context.globalAlpha = strength;
  context.drawImage(layer, left, top, width, height);
  context.restore();
}

/**
 * Lines between the cells.
 * @param {CanvasRenderingContext2D} context
 * @param {Frame} frame
 * @param {number} rows
 * @param {number} columns
 * @param {string} colour
 */
export function ruleCells(context, {left, top, width, height, cell}, rows, columns, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let row = 0; row <= rows; row++) {
    context.moveTo(left, top + row * cell.height);
    context.lineTo(left + width, top + row * cell.height);
  }
  for (let column = 0; column <= columns; column++) {
    context.moveTo(left + column * cell.width, top);
    context.lineTo(left + column * cell.width, top + height);
  }
  context.stroke();
}

/**
 * Numbers in the cells.
 * @param {CanvasRenderingContext2D} context
 * @param {Frame} frame
 * @param {number} columns
 * @param {(at: number) => {text: string, colour: Colour, plate: boolean} | null} numberAt
 */
export function writeNumbers(context, {left, top, height, cell}, columns, numberAt) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let at = 0; at < columns * Math.round(height / cell.height); at++) {
    const number = numberAt(at);
    if (!number) continue;
    const x = left + ((at % columns) + 0.5) * cell.width;
    const y = top + (Math.floor(at / columns) + 0.5) * cell.height;
    if (number.plate) {
      const wide = context.measureText(number.text).width + 6;
      context.fillStyle = `rgb(${number.colour.map(Math.round).join(" ")})`;
      context.fillRect(x - wide / 2, y - 9, wide, 18);
    }
    context.fillStyle = inkOn(number.colour);
    context.fillText(number.text, x, y + 1);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Frame} frame
 * @param {Marks} marks
 * @param {SheetColours} colours
 */
export function markCells(context, {left, top, width, cell}, {pair, row, cursor}, colours) {
  const outline = (/** @type {Cell} */ {query, key}, /** @type {string} */ colour, /** @type {number} */ line) => {
    const [wide, high] = [Math.max(5, cell.width), Math.max(5, cell.height)];
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(left + key * cell.width, top + query * cell.height, wide, high);
  };
  if (row !== null) {
    context.strokeStyle = colours.query;
    context.lineWidth = 2;
    context.strokeRect(left - 1, top + row * cell.height, width + 2, Math.max(3, cell.height));
  }
  if (pair) {
    outline(pair, colours.query, 5);
    outline(pair, colours.key, 2.5);
  }
  if (cursor) outline(cursor, colours.ink, 3);
}
