// The tables that a question gives, seen with it and with its answer.

import {element} from "../parts/element.js";

/** @typedef {{title: string, rows: string[], columns: string[], cells: string[][], wrong: [row: number, column: number][]}} Given */

/** @param {Given[]} tables @param {boolean} beside  whether they stand beside a picture, where there is less room */
export function drawGiven(tables, beside) {
  const place = element("div", {class: "av-given"});
  const most = Math.max(...tables.map(({rows}) => rows.length));
  place.classList.toggle("av-dense", beside || most > 5 || tables.length > 2);
  place.append(...tables.map(drawTable));
  return place;
}

/** @param {Given} given */
function drawTable({title, rows, columns, cells, wrong}) {
  const marked = new Set(wrong.map((place) => place.join()));
  const head = element("tr", {}, element("td"), ...columns.map((name) => tableHead(name, "col")));
  const body = rows.map((name, row) =>
    element(
      "tr",
      {},
      tableHead(name, "row"),
      ...(cells[row] ?? []).map((text, column) =>
        element("td", {class: marked.has(`${row},${column}`) && "av-wrong"}, text),
      ),
    ),
  );
  return element("table", {}, element("caption", {}, title), head, ...body);
}

/** @param {string} name @param {string} scope */
function tableHead(name, scope) {
  return element("th", {scope}, element("bdi", {}, name));
}
