// What stands in the table of a head: the whole head, or one query's row where the head is too large to read.

import {withoutWeight} from "./head.js";
import {MixedHead, significant} from "./mixing.js";
import {threeDigits} from "./scale.js";
import {originWords} from "./tokens.js";

/** @import {Head, Places} from "./head.js"
 * @import {Stream} from "./recording.js" */

/** What stands in a table: its caption in parts, some of which are tokens; the titles of its columns; its rows, whose
 * headings are tokens.
 * @typedef {object} Table
 * @property {{text: string, token: boolean}[]} caption
 * @property {string[]} titles
 * @property {{text: string, heading: boolean}[][]} rows */

/** @typedef {Pick<Head, "at" | "isBlocked">} Weights */

const MOST_CELLS = 1600;

/** The table of a head, or of one query's row where the head is too large; by default that of the first row in sight.
 * @param {Weights} head @param {{stream: Pick<Stream, "queries" | "keys">, rows: Places, columns: Places}} inSight
 * @param {string} name @param {number | null} query @returns {Table} */
export function tableOf(head, {stream, rows, columns}, name, query) {
  return rows.length * columns.length <= MOST_CELLS
    ? wholeTable(head, stream, rows, columns, name)
    : rowTable(head, stream, columns, name, query ?? rows[0]);
}

/** @param {Weights} head @param {Pick<Stream, "queries" | "keys">} stream @param {Places} rows @param {Places} columns
 * @param {string} name */
function wholeTable(head, stream, rows, columns, name) {
  return {
    caption: [
      {
        text: `${name}: ${
          head instanceof MixedHead
            ? "what each key\u2019s value (column) carries to each query (row), below 0 takes away"
            : "how much each query (row) attends to each key (column)"
        }${originWords(stream.keys)}`,
        token: false,
      },
    ],
    titles: ["Query \\ key", ...Array.from(columns, (key) => stream.keys.numbered[key])],
    rows: Array.from(rows, (query) => [
      {text: stream.queries.numbered[query], heading: true},
      ...Array.from(columns, (key) => ({text: number(head, query, key), heading: false})),
    ]),
  };
}

/** @param {Weights} head @param {Pick<Stream, "queries" | "keys">} stream @param {Places} columns @param {string} name
 * @param {number} query */
function rowTable(head, stream, columns, name, query) {
  return {
    caption: [
      {
        text: `${name}: ${head instanceof MixedHead ? "what is carried to the query" : "how much the query"} `,
        token: false,
      },
      {text: stream.queries.spoken[query], token: true},
      {
        text: ` ${head instanceof MixedHead ? "by each key\u2019s value" : "attends to each key"}; choose another token above for another row${originWords(stream.keys)}`,
        token: false,
      },
    ],
    titles: ["Position", "Key", "Weight"],
    rows: Array.from(columns, (key) => [
      {text: String(key), heading: false},
      {text: stream.keys.shown[key], heading: true},
      {text: number(head, query, key), heading: false},
    ]),
  };
}

/** @param {Weights} head @param {number} query @param {number} key */
function number(head, query, key) {
  if (head instanceof MixedHead && !head.isBlocked(query, key)) return significant(head.at(query, key));
  return withoutWeight(head, query, key) ?? threeDigits(head.at(query, key));
}
