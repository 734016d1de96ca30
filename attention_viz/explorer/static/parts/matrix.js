// One head as a matrix: where its cells and labels lie, and painting them.

import {coloured, sample} from "../data/raster.js";
import {colourTable, onRamp, SCALES} from "../data/scale.js";
import {begins} from "../data/tokens.js";

const MOST_LABEL = {row: 92, column: 66};
const LABEL_LINE = 12;
// The least a label needs beside its neighbour, and a cell for a number in small figures; larger ones from `roomy`.
const LABEL_PITCH = 10.5;
const NUMBER = {width: 24, height: 12, roomy: 27};
const LARGEST_CELL = 56;
const HATCH_PERIOD = 6;

/** Where everything lies, in CSS pixels, for a window on the matrix and the room there is. */
export function layMatrix(context, view, window, width, height) {
  const {stream, rows, columns} = view.now;
  context.font = view.fonts.small;
  const widest = (axis, places, most) =>
    Math.min(most, Math.max(...Array.from(places, (place) => context.measureText(axis.numbered[place]).width)));
  const [left, tall] = [
    Math.ceil(widest(stream.queries, rows, MOST_LABEL.row)) + 10,
    Math.ceil(widest(stream.keys, columns, MOST_LABEL.column)),
  ];
  const upright = cellSize(window, width - left, height - tall - 10);
  const flat = cellSize(window, width - left, height - LABEL_LINE - 10);
  const lying = tall <= flat.width - 6;
  const cell = lying ? flat : upright;
  const top = (lying ? LABEL_LINE : tall) + 10;
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

function cellSize(window, width, height) {
  const across = Math.min(width / (window.right - window.left), LARGEST_CELL);
  const down = Math.min(height / (window.bottom - window.top), LARGEST_CELL);
  const square = Math.min(across, down);
  // A little wider than high, where that lets the numbers in.
  if (square >= NUMBER.height && across >= NUMBER.width) return {width: Math.max(square, NUMBER.width), height: square};
  return square >= 6 || window.rows === window.columns
    ? {width: square, height: square}
    : {width: across, height: down};
}

/** Where the n-th row or column of the window begins, so that neighbours share an edge. */
export function edgeOf(index, count, size) {
  return Math.round((index * size) / count);
}

/** Paint cells, numbers where they fit, labels and the two borders. */
export function paintMatrix(context, view, plot) {
  const {head, rows, columns} = view.now;
  const ratio = window.devicePixelRatio || 1;
  const {left, top, width, height} = plot;
  const [shownRows, shownColumns] = [
    rows.subarray(plot.window.top, plot.window.bottom),
    columns.subarray(plot.window.left, plot.window.right),
  ];
  const [across, down] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  const pixels = sample(head, shownRows, shownColumns, across, down);
  const table = colourTable(head.values, view.store.state.scale, view.now.maximum, view.colours.ramp);
  context.putImageData(
    coloured(pixels, across, down, table, view.hatching(HATCH_PERIOD)),
    Math.round(left * ratio),
    Math.round(top * ratio),
  );
  if (Math.min(plot.cell.width, plot.cell.height) >= 9) paintGaps(context, view, plot);
  if (plot.cell.width >= NUMBER.width && plot.cell.height >= NUMBER.height)
    paintNumbers(context, view, plot, shownRows, shownColumns);
  paintBorders(context, view, plot);
  paintBeginnings(context, view, plot, shownRows, shownColumns);
  paintLabels(context, view, plot, shownRows, shownColumns);
}

function paintGaps(context, {colours}, {left, top, width, height, down, across}) {
  context.fillStyle = colours.line;
  for (let row = 1; row < down; row++) context.fillRect(left, top + edgeOf(row, down, height) - 0.5, width, 0.5);
  for (let column = 1; column < across; column++)
    context.fillRect(left + edgeOf(column, across, width) - 0.5, top, 0.5, height);
}

function paintNumbers(context, view, plot, rows, columns) {
  const {head, maximum} = view.now;
  const {colours} = view;
  const {place} = SCALES[view.store.state.scale];
  context.font = plot.cell.width >= NUMBER.roomy ? view.fonts.number : view.fonts.smallNumber;
  context.textAlign = "center";
  context.textBaseline = "middle";
  rows.forEach((query, down) =>
    columns.forEach((key, across) => {
      if (head.isBlocked(query, key)) return;
      const weight = head.at(query, key);
      const colour = onRamp(colours.ramp, place(weight, maximum));
      context.fillStyle =
        Math.abs(lightness(colour) - colours.inkLightness) > Math.abs(lightness(colour) - colours.groundLightness)
          ? colours.ink
          : colours.background;
      if (weight < 0.0005) context.fillStyle = colours.muted;
      context.fillText(
        inCell(weight),
        plot.left + middleOf(plot, "column", across),
        plot.top + middleOf(plot, "row", down) + 0.5,
      );
    }),
  );
}

function inCell(weight) {
  if (weight < 0.0005) return "0";
  return weight >= 0.9995 ? "1" : weight.toFixed(3).slice(1);
}

/** How light a colour looks, 0 to 1 (the lightness of CIELAB, from relative luminance). */
export function lightness([red, green, blue]) {
  const linear = [red, green, blue].map((channel) => (channel / 255) ** 2.2);
  return Math.cbrt(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]);
}

function paintBorders(context, {colours}, {left, top, width, height}) {
  context.fillStyle = colours.query;
  context.fillRect(left - 3, top, 2, height);
  context.fillStyle = colours.key;
  context.fillRect(left, top - 3, width, 2);
}

/** Lines where the second sentence begins, or what the model says. */
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

function paintLabels(context, view, plot, rows, columns) {
  const {stream} = view.now;
  rows.forEach((query, down) => {
    if (down % labelStep(plot, "row") === 0) paintLabel(context, view, plot, "row", down, stream.queries, query, false);
  });
  columns.forEach((key, across) => {
    if (across % labelStep(plot, "column") === 0)
      paintLabel(context, view, plot, "column", across, stream.keys, key, false);
  });
}

/** Every how many rows or columns there is room for a label. */
function labelStep({cell, lying}, side) {
  if (side === "column" && lying) return 1;
  return Math.max(1, Math.ceil(LABEL_PITCH / (side === "row" ? cell.height : cell.width)));
}

/** The middle of a row or column, from the beginning of the matrix. */
function middleOf(plot, side, index) {
  const [count, size] = side === "row" ? [plot.down, plot.height] : [plot.across, plot.width];
  return (edgeOf(index, count, size) + edgeOf(index + 1, count, size)) / 2;
}

/** Cover the labels that a marked one would lie over. */
function coverNeighbours(context, view, plot, side, index) {
  const [step, middle] = [labelStep(plot, side), middleOf(plot, side, index)];
  const count = side === "row" ? plot.down : plot.across;
  context.fillStyle = view.colours.background;
  for (let other = Math.floor(index / step) * step; other < Math.min(count, index + step + 1); other += step) {
    const at = middleOf(plot, side, other);
    if (other !== index && Math.abs(at - middle) >= LABEL_LINE) continue;
    if (side === "row") context.fillRect(0, plot.top + at - LABEL_LINE / 2 - 1, plot.left - 4, LABEL_LINE + 2);
    else if (plot.lying) context.fillRect(plot.left + at - plot.cell.width / 2, 0, plot.cell.width, plot.top - 4);
    else context.fillRect(plot.left + at - LABEL_LINE / 2 - 1, 0, LABEL_LINE + 2, plot.top - 4);
  }
}

/** Write one row's or column's label; a marked one in the colour of its role, over whatever labels lie below it. */
export function paintLabel(context, view, plot, side, index, axis, place, marked) {
  const {colours} = view;
  const lying = side === "row" || plot.lying;
  if (marked) coverNeighbours(context, view, plot, side, index);
  const room = side === "row" ? plot.left - 10 : plot.lying ? plot.cell.width - 4 : plot.top - 10;
  context.save();
  context.font = marked ? view.fonts.strong : view.fonts.small;
  const text = shortened(context, (marked ? axis.numbered : axis.shown)[place], Math.max(room, 8));
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

/** A text cut to a width, with an ellipsis where something is missing. */
function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const signs = [...text];
  let kept = Math.max(1, Math.floor((signs.length * room) / context.measureText(text).width));
  while (kept > 1 && context.measureText(`${signs.slice(0, kept).join("")}\u2026`).width > room) kept -= 1;
  return `${signs.slice(0, kept).join("")}\u2026`;
}
