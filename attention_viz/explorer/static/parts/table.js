// The same numbers as a table, for readers who can't see the picture or want to copy from it.

import {element} from "./element.js";
import {tableOf} from "../data/table.js";

/** A table that is made when it is opened: the whole head, or one query's row where the head is too large. */
export function createTable(view) {
  const place = element("div", {
    class: "av-table-place",
    tabindex: "0",
    role: "region",
    "aria-label": "Weights as a table",
  });
  const node = element(
    "details",
    {class: "av-table", "data-testid": "explorer-table"},
    element("summary", {}, "Read as a table"),
    place,
  );
  const fill = () => {
    if (node.open) place.replaceChildren(...(view.now.head ? [buildTable(view)] : []));
  };
  node.ontoggle = fill;
  return {
    node,
    draw(changed) {
      if (["stream", "layer", "head", "hideSpecial", "query", "pairQuery", "loaded"].some((name) => changed.has(name)))
        fill();
    },
  };
}

function buildTable(view) {
  const {layer, head, query, pairQuery} = view.store.state;
  const {caption, titles, rows} = tableOf(
    view.now.head,
    view.now,
    view.recording.headName(layer, head),
    query ?? pairQuery,
  );
  return element(
    "table",
    {},
    element("caption", {}, ...caption.map(({text, token}) => (token ? element("bdi", {}, text) : text))),
    element("thead", {}, element("tr", {}, ...titles.map((text) => heading("col", text)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map(cell)))),
  );
}

function heading(scope, text) {
  return element("th", {scope, dir: "auto"}, text);
}

function cell({text, heading: isHeading}) {
  return isHeading ? heading("row", text) : element("td", {}, text);
}
