// Where a matrix lies in its canvas: its cells, and the room for its labels.

/** @import {MatrixView} from "./matrix.js"
 * @import {Places} from "../data/head.js"
 * @import {Axis} from "../data/tokens.js"
 * @import {Viewport} from "../data/viewport.js" */

/** @typedef {{width: number, height: number}} Size */

/** Where a matrix lies in its canvas, in CSS pixels: its first cell, the size of all cells, and how many rows and columns
 * there are; `lying` is whether the labels of the columns are, as those of the rows.
 * @typedef {Size & {left: number, top: number, down: number, across: number, cell: Size, lying: boolean,
 *   window: Viewport}} Plot */

/** @typedef {"row" | "column"} Side */

const MOST_LABEL = {row: 92, column: 66};
// How high a line of labels is.
export const LABEL_LINE = 12;
// The least a cell needs for a number in small figures; larger ones from `roomy`, and from `large`.
export const NUMBER = {width: 24, height: 12, roomy: 27, large: 64};
const LARGEST_CELL = {usual: 56, alone: 160};
const MOST_MEASURED = 600;

/** Where everything lies for a window on the matrix and the room there is.
 * @param {CanvasRenderingContext2D} context @param {MatrixView} view @param {Viewport} window @param {number} width
 * @param {number} height
 * @param {boolean} [alone]  on the screen
 * @returns {Plot} */
export function layMatrix(context, view, window, width, height, alone = false) {
  const {stream, rows, columns} = view.now;
  context.font = view.fonts.small;
  const [left, tall] = [
    Math.ceil(Math.min(MOST_LABEL.row, widest(context, stream.queries, rows))) + 10,
    Math.ceil(Math.min(MOST_LABEL.column, widest(context, stream.keys, columns))),
  ];
  const upright = cellSize(window, width - left, height - tall - 10, alone);
  const flat = cellSize(window, width - left, height - LABEL_LINE - 10, alone);
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
  // A little wider than high, where that lets the numbers in.
  if (square >= NUMBER.height && across >= NUMBER.width) return {width: Math.max(square, NUMBER.width), height: square};
  return square >= 6 || window.rows === window.columns
    ? {width: square, height: square}
    : {width: across, height: down};
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
 * @param {Omit<Plot, "cell" | "lying" | "window">} plot
 * @param {Element} stage  that it lies in
 * @param {{clientX: number, clientY: number}} point */
export function cellUnder({left, top, width, height, down, across}, stage, {clientX, clientY}) {
  const box = stage.getBoundingClientRect();
  const [x, y] = [clientX - box.left - left, clientY - box.top - top];
  if (x < 0 || y < 0 || x >= width || y >= height) return null;
  return {row: Math.floor((y * down) / height), column: Math.floor((x * across) / width)};
}
