// The same numbers as a table, for readers who can't see the picture or want to copy from it.

import {element, threeDigits} from "./element.js";
import {originWords} from "../data/tokens.js";

const MOST_CELLS = 1600;

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
  const {rows, columns} = view.now;
  return rows.length * columns.length <= MOST_CELLS ? wholeTable(view) : rowTable(view);
}

function wholeTable(view) {
  const {rows, columns, stream} = view.now;
  const {layer, head} = view.store.state;
  const titles = element(
    "tr",
    {},
    element("th", {scope: "col"}, "Query \\ key"),
    ...Array.from(columns, (key) => heading("col", stream.keys, key)),
  );
  const body = Array.from(rows, (query) =>
    element(
      "tr",
      {},
      heading("row", stream.queries, query),
      ...Array.from(columns, (key) => element("td", {}, number(view, query, key))),
    ),
  );
  return element(
    "table",
    {},
    element(
      "caption",
      {},
      `${view.recording.headName(layer, head)}: how much each query (row) looks at each key (column)${originWords(stream.keys)}`,
    ),
    element("thead", {}, titles),
    element("tbody", {}, ...body),
  );
}

function rowTable(view) {
  const {rows, columns, stream} = view.now;
  const {layer, head, query: pinned, pairQuery} = view.store.state;
  const query = pinned ?? pairQuery ?? rows[0];
  const body = Array.from(columns, (key) =>
    element(
      "tr",
      {},
      element("td", {}, String(key)),
      heading("row", stream.keys, key),
      element("td", {}, number(view, query, key)),
    ),
  );
  const caption = element(
    "caption",
    {},
    `${view.recording.headName(layer, head)}: how much the query `,
    element("bdi", {}, stream.queries.spoken[query]),
    ` looks at each key; choose another token above for another row${originWords(stream.keys)}`,
  );
  return element(
    "table",
    {},
    caption,
    element(
      "thead",
      {},
      element("tr", {}, ...["Position", "Key", "Weight"].map((text) => element("th", {scope: "col"}, text))),
    ),
    element("tbody", {}, ...body),
  );
}

/** A token as the tokenizer spells it; one that would show nothing as it is written in the picture. */
function heading(scope, axis, place) {
  const label = axis.labels[place];
  return element("th", {scope, dir: "auto"}, label.trim() ? label : axis.shown[place]);
}

function number({now: {head}}, query, key) {
  return head.isBlocked(query, key) ? "blocked" : threeDigits(head.at(query, key));
}
