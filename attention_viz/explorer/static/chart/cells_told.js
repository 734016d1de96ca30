// The numbers of a grid in words: beside the pointer, spoken, and as a table.

import {exactText} from "./levels.js";
import {element} from "../parts/element.js";

/** @import {GridCell, NumberGrid} from "./grid.js" */

// The most cells that a table has; of a larger grid it has the row of the cursor.
const MOST_IN_TABLE = 1600;

/** Whether a table has all numbers. @param {NumberGrid} grid */
export function fitsTable({header: {rows, columns}}) {
  return rows.length * columns.length <= MOST_IN_TABLE;
}

/** @param {NumberGrid} grid @param {GridCell} cell */
function valueText({header, values, blocked}, {row, column}) {
  const at = row * header.columns.length + column;
  if (blocked?.[at]) return "blocked";
  return Number.isNaN(values[at]) ? "nothing" : exactText(values[at]);
}

/** @param {NumberGrid} grid @param {GridCell} cell */
export function tooltipOf(grid, cell) {
  const {rows, columns, colours} = grid.header;
  const [row, column] = [rows[cell.row], columns[cell.column]];
  return [
    ...(row ? [element("bdi", {class: `av-word ${colours ? "av-query" : ""}`}, row)] : []),
    ...(row && column && colours ? [element("span", {class: "av-quiet"}, "\u2192")] : []),
    ...(column ? [element("bdi", {class: `av-word ${colours ? "av-keys" : ""}`}, column)] : []),
    element("strong", {}, valueText(grid, cell)),
  ];
}

/** @param {NumberGrid} grid @param {GridCell} cell */
export function spokenCell(grid, cell) {
  const {rows, columns} = grid.header;
  return [rows[cell.row], columns[cell.column], valueText(grid, cell)].filter(Boolean).join(", ");
}

/** All numbers, or of a large grid the cursor's row. @param {NumberGrid} grid */
export function fillTable(grid) {
  const {table, header, cursor, chosen} = grid;
  if (!table.open) return;
  const few = fitsTable(grid);
  const rows = few ? [...header.rows.keys()] : [(cursor ?? chosen)?.row ?? 0];
  const title = (/** @type {string} */ text, scope = "col") => element("th", {scope, dir: "auto"}, text);
  const cells = (/** @type {number} */ row) =>
    header.columns.map((_, column) => element("td", {}, valueText(grid, {row, column})));
  const body = rows.map((row) => element("tr", {}, title(header.rows[row], "row"), ...cells(row)));
  const names = element(
    "tr",
    {},
    title(header.titles.filter(Boolean).join(" \\ ")),
    ...header.columns.map((one) => title(one)),
  );
  table.lastElementChild?.replaceChildren(
    element(
      "table",
      {},
      element("caption", {}, few ? header.words : `${header.words} This is one row.`),
      element("thead", {}, names),
      element("tbody", {}, ...body),
    ),
  );
}
