// A mask to paint: press, drag, or go along with the arrow keys and block with the space bar.

import {arrowStep, element, focusOne, within} from "../../parts/element.js";

/** @import {Prediction, Question} from "../predict.js" */

/** @typedef {{names: string[], label: string, open: string, shut: string, query: string, key: string}} Mask */

/** @param {Question} question @param {number[]} guess */
export function maskOutcome({truth}, guess) {
  /** @type {number[]} */
  const rows = truth?.opening.blocked ?? [];
  const count = rows.length;
  const wrong = rows.flatMap((row, at) => (row === guess[at] ? [] : [at]));
  const [first] = wrong;
  if (first === undefined) return 0;
  if (rows.every((_, at) => guess[at] === columnOf(rows, at))) return 2 * count + 1;
  return 1 + first + (wrong.length > 1 ? count : 0);
}

/** A column as a row. @param {readonly number[]} rows @param {number} column */
function columnOf(rows, column) {
  return rows.reduce((sum, row, at) => sum + (((row >> column) & 1) << at), 0);
}

/** @param {Prediction} prediction */
export function drawMask(prediction) {
  const {opening, truth, guess} = prediction.question;
  const mask = /** @type {Mask} */ (opening);
  const count = mask.names.length;
  const painted = guess?.split(".").map(Number) ?? mask.names.map(() => 0);
  /** @type {number[] | null} */
  const right = truth?.opening.blocked ?? null;
  const cells = mask.names.map((_, row) => mask.names.map((__, column) => makeCell(mask, row, column, right !== null)));
  const grid = element("div", {class: "av-grid"});
  grid.style.setProperty("--av-columns", String(count));
  grid.append(element("span", {class: "av-corner", "aria-hidden": "true"}, mask.query, element("br"), mask.key));
  grid.append(...mask.names.map((name) => element("span", {class: "av-column", "aria-hidden": "true"}, name)));
  cells.forEach((row, at) => {
    grid.append(element("span", {class: "av-row", "aria-hidden": "true"}, mask.names[at] ?? ""), ...row);
  });
  const show = () => {
    cells.forEach((row, at) => {
      row.forEach((cell, column) => {
        const [mine, real] = [painted, right ?? painted].map((rows) => Boolean(((rows[at] ?? 0) >> column) & 1));
        cell.dataset["shut"] = String(real);
        cell.dataset["wrong"] = String(right !== null && guess !== null && mine !== real);
        const pair = `${mask.names[at]} → ${mask.names[column]}`;
        cell.setAttribute("aria-label", `${pair}: ${real ? mask.shut : mask.open}`);
        if (!right) cell.setAttribute("aria-pressed", String(mine));
      });
    });
  };
  if (!right) {
    listenToPaint(grid, cells, painted, () => {
      prediction.choose(painted.join("."));
      show();
    });
  }
  show();
  return element("div", {class: "av-gesture av-mask", role: "group", "aria-label": mask.label}, grid);
}

/** @param {Mask} mask @param {number} row @param {number} column @param {boolean} shown */
function makeCell(mask, row, column, shown) {
  const place = {"data-row": row, "data-column": column, class: "av-cell"};
  if (shown) return element("span", {...place, role: "img"});
  const title = `${mask.names[row]} → ${mask.names[column]}`;
  return element("button", {...place, title, type: "button", tabindex: row || column ? -1 : 0});
}

/** A stroke: what it paints, and the cell that it was at last. @typedef {{shut: boolean, row: number, column: number}} Stroke */

/** @param {HTMLElement | null} cell */
function placeOf(cell) {
  return cell && {row: Number(cell.dataset["row"]), column: Number(cell.dataset["column"])};
}

/** @param {HTMLElement} grid @param {HTMLElement[][]} cells @param {number[]} painted @param {() => void} changed */
function listenToPaint(grid, cells, painted, changed) {
  /** @type {Stroke | null} */
  let stroke = null;
  /** @param {number} row @param {number} column @param {boolean} shut */
  const paint = (row, column, shut) => {
    const before = painted[row] ?? 0;
    painted[row] = shut ? before | (1 << column) : before & ~(1 << column);
  };
  /** @param {{row: number, column: number}} place */
  const begin = ({row, column}) => {
    stroke = {row, column, shut: !(((painted[row] ?? 0) >> column) & 1)};
    paint(row, column, stroke.shut);
    changed();
  };
  /** A fast stroke misses cells: all on its way are painted. @param {Stroke} from @param {{row: number, column: number}} to */
  const goOn = (from, to) => {
    const [down, across] = [to.row - from.row, to.column - from.column];
    const steps = Math.max(Math.abs(down), Math.abs(across));
    for (let step = 1; step <= steps; step++)
      paint(Math.round(from.row + (down * step) / steps), Math.round(from.column + (across * step) / steps), from.shut);
    stroke = {...to, shut: from.shut};
    if (steps) changed();
  };
  grid.addEventListener("pointerdown", (event) => {
    const cell = within(event, ".av-cell");
    const place = placeOf(cell);
    if (!cell || !place) return;
    // A finger holds what it touched first; the stroke goes on under it.
    cell.releasePointerCapture(event.pointerId);
    begin(place);
  });
  grid.addEventListener("pointermove", (event) => {
    const place = placeOf(within(event, ".av-cell"));
    if (stroke && place && event.buttons) goOn(stroke, place);
  });
  for (const end of ["pointerup", "pointercancel"]) grid.addEventListener(end, () => (stroke = null));
  grid.addEventListener("keydown", (event) => {
    const place = placeOf(within(event, ".av-cell"));
    const [down, across] = arrowStep(event.key) ?? [0, 0];
    const next = place && cells[place.row + down]?.[place.column + across];
    if (place && (event.key === " " || event.key === "Enter")) begin(place);
    else if (next && (down || across)) focusOne(cells.flat(), next);
    else return;
    stroke = null;
    event.preventDefault();
  });
}
