// What is painted of any matrix: its cells, strokes over those that are blocked, lines, numbers and frames.

import {fitCanvas} from "./element.js";
import {edgeOf, middleOf} from "./plot.js";
import {inkOn, rgb} from "../data/scale.js";

/** @import {Plot} from "./plot.js"
 * @import {Colour} from "../data/scale.js" */

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
        const wide = context.measureText(number.text).width + 6;
        context.fillStyle = rgb(number.colour);
        context.fillRect(x - wide / 2, y - 9, wide, 18);
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
