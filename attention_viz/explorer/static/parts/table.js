// The same numbers as a table, for readers who can't see the picture or want to copy from it.

import {element} from "./element.js";
import {hasAny} from "../data/store.js";
import {tableOf} from "../data/table.js";

/** @import {Part, View} from "./view.js"
 * @import {AnyHead} from "../data/recording.js" */

/** @typedef {Pick<View, "store" | "recording" | "now">} TableView */

/** A table that is made when it is opened: the whole head, or one query's row where the head is too large.
 * @param {TableView} view @returns {Part} */
export function createTable(view) {
  const place = element("div", {
    class: "av-table-place",
    tabindex: "0",
    role: "region",
    "aria-label": "Table of weights",
  });
  const node = element(
    "details",
    {class: "av-table", "data-testid": "explorer-table"},
    element("summary", {}, "Show table"),
    place,
  );
  const fill = () => {
    const {head} = view.now;
    if (node.open) place.replaceChildren(...(head ? [buildTable(view, head)] : []));
  };
  node.ontoggle = fill;
  return {
    node,
    draw(changed) {
      if (hasAny(changed, "stream", "layer", "head", "hideSpecial", "query", "pairQuery", "arrived", "loaded")) fill();
    },
  };
}

/** @param {TableView} view @param {AnyHead} head */
function buildTable(view, head) {
  const {layer, head: number, query, pairQuery} = view.store.state;
  const name = view.recording.headName(view.now.stream, layer, number);
  const {caption, titles, rows} = tableOf(head, view.now, name, query ?? pairQuery);
  return element(
    "table",
    {},
    element("caption", {}, ...caption.map(({text, token}) => (token ? element("bdi", {}, text) : text))),
    element("thead", {}, element("tr", {}, ...titles.map((text) => heading("col", text)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map(cell)))),
  );
}

/** @param {"row" | "col"} scope @param {string} text */
function heading(scope, text) {
  return element("th", {scope, dir: "auto"}, text);
}

/** @param {{text: string, heading: boolean}} cell */
function cell({text, heading: isHeading}) {
  return isHeading ? heading("row", text) : element("td", {}, text);
}
