// The matrix that is painted: cells on a canvas, its tokens beside it.

import {signedPlace} from "../data/mixing.js";
import {channels, LEAST_NUMBER, onRamp, pixel, weightText} from "../data/scale.js";
import {element, fitCanvas} from "../parts/element.js";
import {nameNode} from "../parts/labels.js";
import {cellImage, cellUnder, frameCells, hatchCells, ruleCells, writeNumbers} from "../parts/plot.js";

/** @import {Ground, Matrices, Shown} from "./board.js"
 * @import {Opening} from "./leaving.js"
 * @import {Frame, Size} from "../parts/plot.js"
 * @import {Colours} from "../parts/style.js" */

/** @typedef {{query: number, key: number}} Cell */

/** What is drawn over the cells: the chosen pair, the row that is pointed at, and where the keyboard is.
 * @typedef {{pair: Cell | null, row: number | null, cursor: Cell | null}} Marks */

/** @typedef {{node: HTMLElement, canvas: HTMLCanvasElement, rows: HTMLElement, columns: HTMLElement, frame: Frame & {cell: Size},
 *   built: Ground | null, laid: string, opening: Opening | null}} Sheet */

const LABEL = 15;
const WIDEST = {wide: 96, narrow: 66};
const TALLEST = 96;
const NUMBERS = {width: 28, signed: 36, height: 17};
// What a signed number takes.
const MIXED_NUMBERS = 50;
// How far the plate of a number goes from its cell's colour to the paper's.
const PALER = 0.6;
const ENDS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1];
// In a long text nearly all numbers are small: the deepest colour is theirs, and the few that are larger have it, too.
const LONG = {cells: 64 * 64, beyond: 0.005, ends: [0.002, 0.005, 0.01, 0.02, ...ENDS]};

/** @returns {Sheet} */
export function createSheet() {
  const canvas = element("canvas", {"aria-hidden": "true"});
  const rows = element("div", {class: "av-sheet-rows"});
  const columns = element("div", {class: "av-sheet-columns"});
  const node = element("div", {class: "av-sheet", "data-testid": "mask-sheet"}, canvas, rows, columns);
  const frame = {left: 0, top: 0, width: 0, height: 0, down: 1, across: 1, cell: {width: 1, height: 1}};
  return {node, canvas, rows, columns, frame, built: null, laid: "", opening: null};
}

/** Lay the cells out in their room, and write the tokens beside them.
 * @param {Sheet} sheet @param {Ground} ground
 * @param {number} room  how high it may be, in pixels */
export function laySheet(sheet, ground, room) {
  const {rows, columns, header} = ground;
  const width = sheet.node.clientWidth;
  if (sheet.built === ground && sheet.laid === `${width} ${room}`) return;
  sheet.laid = `${width} ${room}`;
  const narrow = width < 500;
  const longest = Math.max(...header.queries.tokens.map((token) => token.length));
  const left = Math.min(narrow ? WIDEST.narrow : WIDEST.wide, 16 + longest * 8);
  const longestKey = Math.max(...header.keys.tokens.map((token) => token.length)) * 8;
  const turned = (width - left) / columns < Math.min(62, longestKey);
  // Turned words stick out at the end.
  const across = Math.max(0.5, (width - left - (turned ? 26 : 2)) / columns);
  const top = turned ? 58 : 28;
  const down = Math.min(TALLEST, narrow ? across : Math.max(1, (room - top - 2) / rows));
  const cell = {width: Math.min(across, Math.max(150, down * 2)), height: down};
  // Cells that are small are as wide as high.
  if (Math.min(cell.width, cell.height) < 12) cell.width = cell.height = Math.min(cell.width, cell.height);
  const size = {width: Math.round(cell.width * columns), height: Math.round(cell.height * rows)};
  sheet.frame = {left, top, cell, ...size, down: rows, across: columns};
  sheet.node.style.height = `${top + sheet.frame.height + 2}px`;
  sheet.built = ground;
  writeLabels(sheet.rows, header.queries.tokens, "row", cell.height, (label, at) => {
    Object.assign(label.style, {top: `${top + at * cell.height}px`, width: `${left - 8}px`});
    Object.assign(label.style, {height: `${Math.max(LABEL, cell.height)}px`});
  });
  writeLabels(sheet.columns, header.keys.tokens, "column", cell.width, (label, at) => {
    const middle = left + (at + 0.5) * cell.width;
    label.classList.toggle("av-turned", turned);
    Object.assign(label.style, {left: `${middle}px`, top: `${top - 24}px`});
    label.style.maxWidth = turned ? "62px" : `${Math.max(LABEL, cell.width)}px`;
  });
}

/** @param {HTMLElement} place @param {string[]} tokens @param {"row" | "column"} kind @param {number} pitch
 * @param {(label: HTMLElement, at: number) => void} put */
function writeLabels(place, tokens, kind, pitch, put) {
  const every = Math.max(1, Math.ceil((kind === "row" ? LABEL : LABEL + 4) / pitch));
  const labels = tokens.flatMap((token, at) => {
    if (at % every) return [];
    const label = element(
      "button",
      {type: "button", tabindex: -1, [`data-${kind}`]: at, title: `Block or open the ${kind}`},
      nameNode(token),
    );
    put(label, at);
    return [label];
  });
  place.replaceChildren(...labels);
}

/** The numbers that are drawn, and what the deepest colour stands for; `beyond` where some are larger than that.
 * @param {Matrices} matrices @param {Shown} shown */
export function drawnNumbers({before, after, mixed}, shown) {
  const changed = shown === "difference" && Boolean(after);
  const signed = changed || mixed === "signed";
  const weights = shown === "before" || !after ? before : after;
  const numbers = changed && after ? after.map((weight, at) => weight - before[at]) : weights;
  if (!mixed) return {numbers, signed, ...endOf(numbers, signed)};
  const end = numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 0);
  return {numbers, signed, end: end || 1, beyond: false};
}

/** @param {ArrayLike<number>} numbers @param {boolean} signed */
function endOf(numbers, signed) {
  const long = numbers.length > LONG.cells;
  if (!long && !signed) return {end: 1, beyond: false};
  const ends = long ? LONG.ends : ENDS;
  /** @type {number[]} */
  const above = ends.map(() => 0);
  // Most are below the first: nearly every number is looked at once.
  for (let at = 0; at < numbers.length; at++)
    for (let step = 0; Math.abs(numbers[at]) > ends[step]; step++) above[step] += 1;
  const found = above.findIndex((count) => count <= (long ? LONG.beyond * numbers.length : 0));
  const step = found < 0 ? ends.length - 1 : found;
  return {end: ends[step], beyond: above[step] > 0};
}

/** Draw the cells with their numbers and marks.
 * @param {Sheet} sheet @param {Matrices} matrices @param {Shown} shown @param {Colours} colours @param {Marks} marks */
export function drawSheet(sheet, matrices, shown, colours, marks) {
  const {frame} = sheet;
  const {left, top, width, height, cell, across} = frame;
  const context = fitCanvas(sheet.canvas, left + width + 4, top + height + 4);
  context.clearRect(0, 0, left + width + 4, top + height + 4);
  const {numbers, end, signed} = drawnNumbers(matrices, shown);
  const ramp = signed ? colours.differences : colours.ramp;
  const {mixed} = matrices;
  const placeOf = (/** @type {number} */ at) => (mixed ? signedPlace(numbers[at], end) : numbers[at] / end);
  const colourOf = (/** @type {number} */ at) => onRamp(ramp, signed ? (placeOf(at) + 1) / 2 : placeOf(at));
  const paper = channels(colours.background);
  const large = Math.min(cell.width, cell.height) >= 6;
  const waiting = !matrices.after && shown !== "before";
  context.save();
  if (waiting) context.globalAlpha = 0.35;
  context.imageSmoothingEnabled = cell.width < 1;
  context.drawImage(
    cellImage(frame, (at) => pixel(colourOf(at))),
    left,
    top,
    width,
    height,
  );
  context.restore();
  const open = shown === "before" ? matrices.own : matrices.open;
  const [stroke, strength] = signed ? [colours.ink, 0.4] : [colours.blocked, 1];
  // What the model blocks by itself is quieter than what was blocked on top.
  const onTop = open.map((free, at) => (free || !matrices.own[at] ? 1 : 0));
  hatchCells(context, frame, matrices.own, stroke, strength * 0.4);
  hatchCells(context, frame, onTop, stroke, strength);
  if (large) {
    ruleCells(context, frame, colours.line, 1);
    frameCells(context, frame, {row: null, column: null}, colours.line, 1);
  }
  if (cell.width >= (signed ? NUMBERS.signed : NUMBERS.width) && cell.height >= NUMBERS.height && !waiting) {
    const small = cell.width < (mixed ? MIXED_NUMBERS : 52);
    const font = `${small ? 11 : mixed ? 12 : 13}px ${getComputedStyle(sheet.node).fontFamily}`;
    writeNumbers(context, frame, font, (row, column) => {
      const at = row * across + column;
      const number = numbers[at];
      const least = mixed ? LEAST_NUMBER * end : LEAST_NUMBER;
      if (Math.abs(number) < (small ? 2 : 1) * least || (!open[at] && !signed) || (mixed && small)) return null;
      const text = mixed ? shortSigned(number) : (signed && number > 0 ? "+" : "") + weightText(number);
      // On strokes a number stands on a paler plate.
      return open[at]
        ? {text, colour: colourOf(at)}
        : {text, colour: onRamp([colourOf(at), paper], PALER), plate: true};
    });
  }
  const frameCell = (/** @type {Cell | null} */ at, /** @type {string} */ colour, /** @type {number} */ line) =>
    at && frameCells(context, frame, {row: at.query, column: at.key}, colour, line);
  if (marks.row !== null) frameCells(context, frame, {row: marks.row, column: null}, colours.query, 2);
  frameCell(marks.pair, colours.query, 5);
  frameCell(marks.pair, colours.key, 2.5);
  frameCell(marks.cursor, colours.ink, 3);
}

/** A number with two digits that count. @param {number} number */
function shortSigned(number) {
  return String(Number(number.toPrecision(2))).replace("-", "\u2212");
}

/** The cell at a point of the window; null beside the cells.
 * @param {Sheet} sheet @param {{clientX: number, clientY: number}} point @returns {Cell | null} */
export function cellAt({canvas, frame, built}, point) {
  const cell = built && cellUnder(frame, canvas, point);
  return cell && {query: cell.row, key: cell.column};
}
