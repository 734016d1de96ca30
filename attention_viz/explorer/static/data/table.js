// What stands in the table of a head: the whole head, or one query's row where the head is too large to read.

import {threeDigits} from "./scale.js";
import {originWords} from "./tokens.js";

const MOST_CELLS = 1600;

/**
 * The table as text: its caption in parts (a part in `token` is a token), the titles of its columns, and its rows.
 *
 * A cell is {text}, or {text, heading} where it names a token of the row or column ("row", "col").
 */
export function tableOf(head, {stream, rows, columns}, name, query) {
  return rows.length * columns.length <= MOST_CELLS
    ? wholeTable(head, stream, rows, columns, name)
    : rowTable(head, stream, columns, name, query ?? rows[0]);
}

function wholeTable(head, stream, rows, columns, name) {
  return {
    caption: [
      {text: `${name}: how much each query (row) looks at each key (column)${originWords(stream.keys)}`, token: false},
    ],
    titles: ["Query \\ key", ...Array.from(columns, (key) => written(stream.keys, key))],
    rows: Array.from(rows, (query) => [
      {text: written(stream.queries, query), heading: true},
      ...Array.from(columns, (key) => ({text: number(head, query, key), heading: false})),
    ]),
  };
}

function rowTable(head, stream, columns, name, query) {
  return {
    caption: [
      {text: `${name}: how much the query `, token: false},
      {text: stream.queries.spoken[query], token: true},
      {
        text: ` looks at each key; choose another token above for another row${originWords(stream.keys)}`,
        token: false,
      },
    ],
    titles: ["Position", "Key", "Weight"],
    rows: Array.from(columns, (key) => [
      {text: String(key), heading: false},
      {text: written(stream.keys, key), heading: true},
      {text: number(head, query, key), heading: false},
    ]),
  };
}

/** A token as the tokenizer spells it; one that would show nothing as it is written in the picture. */
function written(axis, place) {
  const label = axis.labels[place];
  return label.trim() ? label : axis.shown[place];
}

function number(head, query, key) {
  return head.isBlocked(query, key) ? "blocked" : threeDigits(head.at(query, key));
}
