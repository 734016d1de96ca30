// A matrix of any numbers, drawn as the explorer draws a head: labels, cells, numbers where they fit, frames.

import {cellText, hasSigns, levelColours, levelsOf, placeOnRamp, poolOf} from "./levels.js";
import {fillTable, fitsTable, spokenCell, tooltipOf} from "./cells_told.js";
import {coloured, sampleBy} from "../data/raster.js";
import {numbersAt} from "../data/payload.js";
import {LEAST_NUMBER, onRamp, rgb} from "../data/scale.js";
import {setApart} from "../data/spelling.js";
import {arrowStep, element, fitCanvas} from "../parts/element.js";
import {paintLabel, paintLabels} from "../parts/labels.js";
import {NUMBER, cellUnder, frameCells, layMatrix, ruleCells, writeNumbers} from "../parts/plot.js";
import {hatchingOf, rampOf, readStyle} from "../parts/style.js";
import {createTooltip} from "../parts/tooltip.js";
import {wholeWindow} from "../data/viewport.js";

/** @import {GridScale} from "./levels.js"
 * @import {Payload, Place} from "../data/payload.js"
 * @import {MatrixView} from "../parts/matrix.js"
 * @import {Plot} from "../parts/plot.js"
 * @import {Tooltip} from "../parts/tooltip.js"
 * @import {Drawing} from "./chart.js" */

/** What stands before a grid's numbers, as `pack_grid` in chart_payload.py writes it.
 * @typedef {object} GridHeader
 * @property {"grid"} kind
 * @property {string[]} rows
 * @property {string[]} columns
 * @property {[row: string, column: string]} titles
 * @property {boolean} colours  whether rows are queries and columns keys
 * @property {GridScale} scale
 * @property {number} largest
 * @property {[row: number, column: number] | null} chosen
 * @property {[rows: number[], columns: number[]]} marked
 * @property {string} words
 * @property {number} digits
 * @property {boolean} clicks
 * @property {boolean} fine  whether the numbers have 64 bits
 * @property {Place} values
 * @property {Place | null} blocked */

/** @typedef {{row: number, column: number}} GridCell */

/** A grid on the page. `cursor` is the cell under the pointer or the arrow keys.
 * @typedef {object} NumberGrid
 * @property {HTMLElement} root
 * @property {HTMLElement} head
 * @property {HTMLElement} stage
 * @property {HTMLCanvasElement} base
 * @property {HTMLCanvasElement} over
 * @property {HTMLDetailsElement} table
 * @property {HTMLElement} live
 * @property {Tooltip} tooltip
 * @property {GridHeader} header
 * @property {Float32Array | Float64Array} values
 * @property {Uint16Array | null} blocked
 * @property {Uint16Array} levels
 * @property {GridCell | null} cursor
 * @property {GridCell | null} chosen
 * @property {MatrixView} view
 * @property {Plot} plot */

const HATCH = 6;

/** The numbers of a grid, and the levels of their colours. @typedef {{header: GridHeader,
 *   values: Float32Array | Float64Array, blocked: Uint16Array | null, levels: Uint16Array}} GridNumbers */

/** @param {HTMLElement} root @param {(cell: GridCell) => void} press
 * @returns {Drawing & {show: (numbers: GridNumbers) => void}} */
export function createNumberGrid(root, press) {
  const [base, over] = [
    element("canvas", {"aria-hidden": "true"}),
    element("canvas", {"aria-hidden": "true", class: "av-over"}),
  ];
  const stage = element("div", {class: "av-stage", tabindex: "0", role: "application"}, base, over);
  stage.setAttribute("aria-roledescription", "matrix");
  const place = element("div", {class: "av-table-place", tabindex: "0", role: "region", "aria-label": "Table"});
  const table = element("details", {class: "av-table"}, element("summary", {}, "Show table"), place);
  const [head, live] = [element("header", {}), element("p", {class: "av-live", "aria-live": "polite"})];
  root.replaceChildren(head, stage, table, live);
  const parts = {root, head, stage, base, over, table, live, tooltip: createTooltip(root), cursor: null, chosen: null};
  const grid = /** @type {NumberGrid} */ (/** @type {unknown} */ (parts));
  table.ontoggle = () => fillTable(grid);
  listenToGrid(grid, press);
  const show = (/** @type {GridNumbers} */ numbers) => {
    takeGrid(grid, numbers);
    drawGrid(grid);
    fillTable(grid);
  };
  return {load: (payload) => show(gridNumbers(payload)), show, draw: () => drawGrid(grid)};
}

/** @param {Payload<GridHeader>} payload @returns {GridNumbers} */
function gridNumbers(payload) {
  const {header} = payload;
  const values = header.fine
    ? numbersAt(payload, header.values, Float64Array)
    : numbersAt(payload, header.values, Float32Array);
  const blocked = header.blocked && numbersAt(payload, header.blocked, Uint16Array);
  return {header, values, blocked, levels: levelsOf(values, blocked, header.scale, header.largest)};
}

/** @param {NumberGrid} grid @param {GridNumbers} numbers */
function takeGrid(grid, numbers) {
  const {header} = numbers;
  const chosen = header.chosen && {row: header.chosen[0], column: header.chosen[1]};
  Object.assign(grid, {...numbers, chosen});
  const {cursor} = grid;
  if (cursor && (cursor.row >= header.rows.length || cursor.column >= header.columns.length)) grid.cursor = null;
  grid.stage.setAttribute(
    "aria-label",
    `${header.words} Arrow keys move from cell to cell${header.clicks ? "; Enter chooses one" : ""}.`.trim(),
  );
}

/** @param {NumberGrid} grid */
function drawGrid(grid) {
  const {root, header, base, stage, blocked} = grid;
  const width = root.clientWidth;
  if (!header || width === 0) return;
  const {colours, fonts} = readStyle(root);
  if (!colours.query) return;
  drawHead(grid, rampOf(colours, rampName(header)).map(rgb));
  const named = header.colours ? colours : {...colours, query: colours.ink, key: colours.ink};
  const [rows, columns] = [placesOf(header.rows), placesOf(header.columns)];
  const stream = {queries: axisOf(header.rows), keys: axisOf(header.columns)};
  const now = {stream, rows, columns};
  grid.view = /** @type {MatrixView} */ (/** @type {unknown} */ ({now, colours: named, fonts}));
  const room = roomOfGrid(width);
  const context = fitCanvas(base, width, room);
  const plot = (grid.plot = layMatrix(context, grid.view, wholeWindow(rows.length, columns.length), width, room));
  const used = Math.min(room, plot.top + plot.height + 4);
  context.clearRect(0, 0, width, room);
  stage.style.height = `${used}px`;
  const ratio = window.devicePixelRatio || 1;
  const [across, down] = [Math.max(1, Math.round(plot.width * ratio)), Math.max(1, Math.round(plot.height * ratio))];
  const pool = poolOf(grid.levels, columns.length, header.scale);
  const pixels = sampleBy(pool, rows.length, columns.length, across, down);
  const table = levelColours(rampOf(colours, rampName(header)));
  const image = coloured(pixels, across, down, table, hatchingOf(colours, HATCH, 1));
  context.putImageData(image, Math.round(plot.left * ratio), Math.round(plot.top * ratio));
  if (Math.min(plot.cell.width, plot.cell.height) >= 9) ruleCells(context, plot, colours.line);
  writeGridNumbers(context, grid, blocked);
  if (header.colours) {
    context.fillStyle = colours.query;
    context.fillRect(plot.left - 3, plot.top, 2, plot.height);
    context.fillStyle = colours.key;
    context.fillRect(plot.left, plot.top - 3, plot.width, 2);
  }
  paintLabels(context, grid.view, plot, rows, columns);
  drawOverGrid(grid);
}

/** The titles of rows and columns, and what the colours stand for. @param {NumberGrid} grid @param {string[]} ramp */
function drawHead({head, header}, ramp) {
  const [row, column] = header.titles;
  const title = element(
    "h2",
    {},
    ...(row ? [element("span", {class: header.colours ? "av-query" : ""}, `${row} \u2193`), " "] : []),
    ...(column ? [element("span", {class: header.colours ? "av-keys" : ""}, `${column} \u2192`)] : []),
  );
  const bar = element("i", {});
  bar.style.background = `linear-gradient(to right, ${ramp.join(", ")})`;
  const most =
    header.scale === "weight" && header.largest === 1 ? "1" : cellText(header.largest, "size", header.digits);
  const least = hasSigns(header.scale) ? `\u2212${most}` : "0";
  const steps = header.scale === "mixed" ? ", in equal steps for equal factors" : "";
  const words = `Colours from ${least} to ${most}${steps}`;
  head.replaceChildren(title, element("span", {class: "av-chart-scale", title: words}, least, bar, most));
}

/** @param {CanvasRenderingContext2D} context @param {NumberGrid} grid @param {Uint16Array | null} blocked */
function writeGridNumbers(context, {header, values, view, plot}, blocked) {
  const {scale, digits, largest} = header;
  const {width, height} = plot.cell;
  if (height < NUMBER.height || width < NUMBER.width) return;
  const font = width >= NUMBER.large ? view.fonts.largeNumber : view.fonts.number;
  context.font = font;
  const widest = cellText(scale === "size" ? largest : -largest, scale, digits);
  if (context.measureText(scale === "weight" ? "0.00" : widest).width > width - 4) return;
  const ramp = rampOf(view.colours, rampName(header));
  writeNumbers(context, plot, font, (row, column) => {
    const at = row * plot.across + column;
    const value = values[at];
    const least = {weight: LEAST_NUMBER, mixed: LEAST_NUMBER * largest, size: 0, signed: 0}[scale];
    if (blocked?.[at] || Number.isNaN(value) || Math.abs(value) < least) return null;
    return {text: cellText(value, scale, digits), colour: onRamp(ramp, placeOnRamp(value, scale, largest))};
  });
}

/** What lies over the cells: the frame of what is chosen, of what is marked, and of what is pointed at.
 * @param {NumberGrid} grid */
function drawOverGrid({over, base, header, view, plot, cursor, chosen}) {
  const context = fitCanvas(over, base.clientWidth, base.clientHeight);
  context.clearRect(0, 0, over.clientWidth, over.clientHeight);
  const {colours, now} = view;
  context.setLineDash([4, 3]);
  for (const row of header.marked[0]) frameCells(context, plot, {row, column: null}, colours.ink, 1.5);
  for (const column of header.marked[1]) frameCells(context, plot, {row: null, column}, colours.ink, 1.5);
  context.setLineDash([]);
  if (chosen) frameCells(context, plot, chosen, colours.accent, 2);
  if (!cursor) return;
  const {row, column} = cursor;
  frameCells(context, plot, {row, column: null}, colours.query, 1.5);
  frameCells(context, plot, {row: null, column}, colours.key, 1.5);
  paintLabel(context, view, plot, "row", row, now.stream.queries, row, true);
  paintLabel(context, view, plot, "column", column, now.stream.keys, column, true);
}

/** @param {NumberGrid} grid @param {(cell: GridCell) => void} press */
function listenToGrid(grid, press) {
  const {stage, tooltip} = grid;
  const choose = () => {
    if (!grid.cursor || !grid.header.clicks) return;
    grid.chosen = grid.cursor;
    drawOverGrid(grid);
    press(grid.cursor);
  };
  const point = (/** @type {PointerEvent} */ event) => {
    moveTo(grid, cellUnder(grid.plot, stage, event) ?? strongestBeside(grid, event));
    stage.style.cursor = grid.cursor && grid.header.clicks ? "pointer" : "default";
    if (grid.cursor) tooltip.show(event.clientX, event.clientY, ...tooltipOf(grid, grid.cursor));
  };
  stage.addEventListener("pointermove", point);
  stage.addEventListener("pointerdown", point);
  stage.addEventListener("pointerleave", () => moveTo(grid, null));
  stage.addEventListener("blur", () => moveTo(grid, null));
  stage.addEventListener("click", choose);
  stage.addEventListener("keydown", (event) => {
    const next = event.key === "Enter" || event.key === " " ? grid.cursor : cellByKey(grid, event.key);
    if (event.ctrlKey || event.metaKey || event.altKey || next === null) return;
    event.preventDefault();
    if (next === grid.cursor) {
      choose();
      return;
    }
    moveTo(grid, next);
    grid.live.textContent = spokenCell(grid, next);
    const box = stage.getBoundingClientRect();
    const {left, top, cell} = grid.plot;
    const [x, y] = [left + (next.column + 0.5) * cell.width, top + (next.row + 0.5) * cell.height];
    tooltip.show(box.left + x, box.top + y, ...tooltipOf(grid, next));
  });
}

/** The strongest cell of the row whose label is pointed at. @param {NumberGrid} grid @param {PointerEvent} event
 * @returns {GridCell | null} */
function strongestBeside({header, plot, stage, values, blocked}, {clientX, clientY}) {
  const box = stage.getBoundingClientRect();
  const row = Math.floor(((clientY - box.top - plot.top) * plot.down) / plot.height);
  if (!header.clicks || row < 0 || row >= plot.down || clientX - box.left >= plot.left) return null;
  const first = row * plot.across;
  const open = Array.from({length: plot.across}, (_, column) => column).filter((column) => !blocked?.[first + column]);
  const size = (/** @type {number} */ column) => Math.abs(values[first + column]) || 0;
  const column = open.reduce((most, one) => (size(one) > size(most) ? one : most), open[0] ?? 0);
  return {row, column};
}

/** @param {NumberGrid} grid @param {GridCell | null} cell */
function moveTo(grid, cell) {
  const {cursor} = grid;
  if (!cell) grid.tooltip.hide();
  if (cursor?.row === cell?.row && cursor?.column === cell?.column) return;
  grid.cursor = cell;
  drawOverGrid(grid);
  if (!fitsTable(grid)) fillTable(grid);
}

/** @param {NumberGrid} grid @param {string} key @returns {GridCell | null} */
function cellByKey({header, cursor, chosen}, key) {
  const step = arrowStep(key);
  if (!step) return null;
  const from = cursor ?? chosen;
  if (!from) return {row: 0, column: 0};
  const within = (/** @type {number} */ at, /** @type {unknown[]} */ all) => Math.min(Math.max(at, 0), all.length - 1);
  return {row: within(from.row + step[0], header.rows), column: within(from.column + step[1], header.columns)};
}

/** @param {GridHeader} header */
function rampName({scale}) {
  return hasSigns(scale) ? "signed" : "linear";
}

/** @param {string[]} labels */
function placesOf({length}) {
  return Int32Array.from({length}, (_, at) => at);
}

/** Labels as an axis has them. @param {string[]} labels */
function axisOf(labels) {
  const shown = labels.map(setApart);
  return {numbered: shown, dimmed: new Uint8Array(labels.length)};
}

/** How high a grid may be. @param {number} width */
function roomOfGrid(width) {
  if (width < 720) return Math.min(Math.max(width, 260), 440);
  return Math.min(Math.max(window.innerHeight - 280, 320), 640);
}
