// One head as a matrix: painting its cells, its numbers where they fit, and its borders.

import {paintLabels} from "./labels.js";
import {NUMBER, edgeOf, ruleCells, writeNumbers} from "./plot.js";
import {coloured} from "../data/raster.js";
import {Head} from "../data/head.js";
import {LEAST_NUMBER, SCALES, colourTable, onRamp, relativeTable, twoDigits, weightText} from "../data/scale.js";
import {MixedHead} from "../data/mixing.js";
import {rampOf} from "./style.js";
import {begins} from "../data/tokens.js";

/** @import {Drawn} from "./blocks.js"
 * @import {Plot} from "./plot.js"
 * @import {View} from "./view.js"
 * @import {Places} from "../data/head.js"
 * @import {AnyHead} from "../data/recording.js" */

/** @typedef {Pick<View, "store" | "now" | "colours" | "fonts" | "hatching">} MatrixView */

const HATCH_PERIOD = 6;
// The least side of a cell, in pixels, that strokes are seen in.
const LEAST_HATCHED = 6;
// The least side of a cell that a dot is seen in.
const LEAST_DOTTED = 4;
// The least that a cell needs for a number with a sign.
const SIGNED_NUMBER = 36;

/** Paint cells, numbers where they fit, labels and the two borders; tells the weight that has the deepest colour.
 * @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Drawn} drawn @param {Plot} plot
 * @param {Places} shownRows @param {Places} shownColumns */
export function paintMatrix(context, view, drawn, plot, shownRows, shownColumns) {
  const {head} = view.now;
  const {scale} = view.now;
  const ramp = rampOf(view.colours, scale);
  const ratio = window.devicePixelRatio || 1;
  const {left, top, width, height} = plot;
  const [across, down] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  const pixels = drawn.sample(across, down);
  const maximum = drawn.relative ? largest(pixels, drawn.values) : view.now.maximum;
  const table = (drawn.relative ? relativeTable : colourTable)(drawn.values, scale, maximum, ramp);
  context.putImageData(
    coloured(pixels, across, down, table, view.hatching(HATCH_PERIOD)),
    Math.round(left * ratio),
    Math.round(top * ratio),
  );
  if (Math.min(plot.cell.width, plot.cell.height) >= 9) ruleCells(context, plot, view.colours.line);
  if (head instanceof Head && head.below) dotLeftOut(context, view.colours, head, plot, shownRows, shownColumns);
  if (head instanceof MixedHead && head.skip) hatchSkip(context, view, plot, shownRows, shownColumns);
  if (
    head !== null &&
    plot.cell.width >= NUMBER.width * view.fonts.size &&
    plot.cell.height >= NUMBER.height * view.fonts.size
  )
    paintNumbers(context, view, head, plot, shownRows, shownColumns);
  paintBorders(context, view, plot);
  paintBeginnings(context, view, plot, shownRows, shownColumns);
  paintLabels(context, view, plot, shownRows, shownColumns);
  return maximum;
}

/** Dots instead of strokes in the cells of keys that an indexer could have picked, and left out.
 * @param {CanvasRenderingContext2D} context @param {MatrixView["colours"]} colours @param {Head} head @param {Plot} plot
 * @param {Places} rows @param {Places} columns */
function dotLeftOut(context, colours, head, {left, top, width, height, down, across, cell}, rows, columns) {
  const least = Math.min(cell.width, cell.height);
  if (least < LEAST_DOTTED) return;
  rows.forEach((query, row) =>
    columns.forEach((key, column) => {
      if (head.leftOut(query, key) === null) return;
      const [x, y] = [left + edgeOf(column, across, width), top + edgeOf(row, down, height)];
      const size = [edgeOf(column + 1, across, width) + left - x, edgeOf(row + 1, down, height) + top - y];
      context.fillStyle = colours.background;
      context.fillRect(x + 0.5, y + 0.5, size[0] - 1, size[1] - 1);
      context.fillStyle = colours.muted;
      context.beginPath();
      context.arc(x + size[0] / 2, y + size[1] / 2, Math.min(3, least / 5), 0, 2 * Math.PI);
      context.fill();
    }),
  );
}

/** Strokes over the diagonal of a layer that has a skip: such a cell isn't its memory alone.
 * @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Plot} plot @param {Places} rows
 * @param {Places} columns */
function hatchSkip(context, {colours}, {left, top, width, height, down, across, cell}, rows, columns) {
  if (Math.min(cell.width, cell.height) < LEAST_HATCHED) return;
  context.save();
  context.beginPath();
  rows.forEach((query, row) => {
    const column = columns.indexOf(query);
    if (column < 0) return;
    const [x, y] = [left + edgeOf(column, across, width), top + edgeOf(row, down, height)];
    context.rect(x, y, edgeOf(column + 1, across, width) - edgeOf(column, across, width), cell.height);
  });
  context.clip();
  context.beginPath();
  for (let at = -height; at < width; at += HATCH_PERIOD) {
    context.moveTo(left + at, top);
    context.lineTo(left + at + height, top + height);
  }
  context.strokeStyle = colours.background;
  context.globalAlpha = 0.7;
  context.stroke();
  context.restore();
}

/** The largest weight under any pixel; what stands for blocked cells is no number.
 * @param {Uint16Array} pixels @param {ArrayLike<number>} values */
function largest(pixels, values) {
  return values[pixels.reduce((most, number) => (number < values.length && number > most ? number : most), 0)];
}

/** @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {AnyHead} head @param {Plot} plot
 * @param {Places} rows @param {Places} columns */
function paintNumbers(context, view, head, plot, rows, columns) {
  const {maximum, scale} = view.now;
  const {place} = SCALES[scale];
  const mixed = head instanceof MixedHead;
  if (mixed && plot.cell.width < SIGNED_NUMBER * view.fonts.size) return;
  writeNumbers(context, plot, numberFont(view, plot.cell.width), (row, column) => {
    const [query, key] = [rows[row], columns[column]];
    const weight = head.isBlocked(query, key) ? 0 : head.at(query, key);
    if (Math.abs(weight) < LEAST_NUMBER * (mixed ? maximum : 1) || weight === 0) return null;
    const text = mixed ? twoDigits(weight) : weightText(weight);
    return {text, colour: onRamp(rampOf(view.colours, scale), place(weight, maximum))};
  });
}

/** @param {MatrixView} view @param {number} width  of a cell */
function numberFont({fonts}, width) {
  if (width >= NUMBER.large * fonts.size) return fonts.largeNumber;
  return width >= NUMBER.roomy * fonts.size ? fonts.number : fonts.smallNumber;
}

/** @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Plot} plot */
function paintBorders(context, {colours}, {left, top, width, height}) {
  context.fillStyle = colours.query;
  context.fillRect(left - 3, top, 2, height);
  context.fillStyle = colours.key;
  context.fillRect(left, top - 3, width, 2);
}

/** Lines where the second sentence begins, or what the model says.
 * @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Plot} plot @param {Places} rows
 * @param {Places} columns */
function paintBeginnings(context, view, {left, top, width, height, down, across}, rows, columns) {
  const {stream} = view.now;
  context.fillStyle = view.colours.ink;
  rows.forEach((query, row) => {
    if (row > 0 && begins(stream.queries, query))
      context.fillRect(left - 3, top + edgeOf(row, down, height) - 0.5, width + 3, 1);
  });
  columns.forEach((key, column) => {
    if (column > 0 && begins(stream.keys, key))
      context.fillRect(left + edgeOf(column, across, width) - 0.5, top - 3, 1, height + 3);
  });
}
