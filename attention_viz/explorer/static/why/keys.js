// The keys of a query whose score no head wrote: each bar split by word, place and biases.

import {plainNumber, signed, wordAt} from "./reading.js";
import {comparedWith, partName, sumInWords} from "./verdict.js";
import {element} from "../parts/element.js";
import {weightText} from "../data/scale.js";

/** @import {WhyHeader} from "./reading.js"
 * @import {SplitView} from "./split.js"
 * @import {KeyRow, SplitHeader} from "./verdict.js" */

// Keys are sorted on request only beyond so many.
const SORTABLE = 12;

/** @typedef {{rows: KeyRow[], names: string[], mine: KeyRow, other: KeyRow | null}} SplitKeys */

/** @param {WhyHeader} header @param {SplitHeader} split @param {SplitKeys} keys @param {SplitView} view */
export function drawKeys(header, split, keys, view) {
  const {rows, names, mine} = keys;
  const sorted = view.isSorted ? [...rows].sort((one, two) => two.score - one.score) : rows;
  const sort = {class: "av-split-sort", type: "button", "aria-pressed": String(view.isSorted), onclick: view.sort};
  const all = rows.length === 1 ? "Its only key" : `All ${rows.length} keys`;
  return element(
    "section",
    {class: "av-split-left", "aria-label": "Keys"},
    element(
      "header",
      {},
      element("h2", {}, `${all}, split the same way`),
      rows.length > SORTABLE ? element("button", sort, "Largest first") : null,
    ),
    element("p", {class: "av-note"}, legendOf(header, names), element("span", {}, "grey takes away")),
    element(
      "div",
      {class: "av-split-key av-split-heads", "aria-hidden": "true"},
      ...["", "", "score", "weight"].map((word) => element("span", {}, word)),
    ),
    element("div", {class: "av-split-keys"}, ...keyRows(header, {...keys, rows: sorted}, view)),
    element("p", {class: "av-split-told", "aria-live": "polite"}, ...toldOf(header, split, keys, view)),
    ...notesOf(header, split, mine),
  );
}

/** @param {WhyHeader} header @param {SplitKeys} keys @param {SplitView} view */
function keyRows(header, {rows, names, mine, other}, view) {
  const sum = (/** @type {KeyRow} */ {parts}, /** @type {number} */ sign) =>
    parts.reduce((total, one) => total + Math.max(0, sign * one), 0);
  const up = Math.max(1e-9, ...rows.map((row) => sum(row, 1)));
  const down = Math.max(0, ...rows.map((row) => sum(row, -1)));
  return rows.map((row) =>
    element(
      "button",
      {
        class: "av-split-key",
        type: "button",
        "data-key": row.at,
        "aria-pressed": String(row === other),
        "aria-current": row === mine ? "true" : null,
        title: sumInWords(row, names, header.units.key),
        onclick: () => view.compare(row === mine || row === other ? null : row.at),
      },
      keyName(header, row.at),
      segments(row, names, down, up + down),
      element("span", {class: "av-split-score"}, plainNumber(row.score)),
      element("span", {class: "av-split-weight"}, weightText(row.weight)),
    ),
  );
}

/** How the pressed key differs. @param {WhyHeader} header @param {SplitHeader} split @param {SplitKeys} keys
 * @param {SplitView} view @returns {(string | Node)[]} */
function toldOf(header, split, {rows, names, mine, other}, view) {
  if (!other) return rows.length > 1 ? [`Press a key to compare it with ${wordAt(header, "key", mine.at)}.`] : [];
  const open = () => view.open({pair: [split.layer, split.head, split.query, other.at]});
  const button = {class: "av-link", type: "button", onclick: open};
  return [
    comparedWith(header, mine, other, names),
    element("button", button, `Explain ${wordAt(header, "key", other.at)} instead`),
  ];
}

/** What the numbers leave out. @param {WhyHeader} header @param {SplitHeader} split @param {KeyRow} mine */
function notesOf(header, split, mine) {
  const shared = split.shared[split.keys.indexOf(mine.at)];
  const words = [
    "Exact for this text: the layer norm’s scale is held as it was.",
    shared ? `The biases include the sentence embedding, the same at every place: ${signed(shared)}.` : "",
    split.beside ? "The model adds a number for the distance to each score." : "",
    split.softcap ? "The model then caps each score, so weights follow capped scores." : "",
    split.places === "unknown" ? `This model doesn’t let the page separate places from ${header.units.key}s here.` : "",
    split.places === "none" ? "Places play no part in this score." : "",
    split.together
      ? "Word: the score with both at one place. Distance: the change by the rotation between their places."
      : "",
  ];
  return words.filter((one) => one).map((one) => element("p", {class: "av-note"}, one));
}

/** @param {WhyHeader} header @param {string[]} names */
function legendOf(header, names) {
  const entry = (/** @type {string} */ name) =>
    element("span", {}, element("i", {class: "av-more", "data-part": name}), ` ${partName(name, header.units.key)} `);
  return element("span", {class: "av-split-legend"}, ...names.map(entry));
}

/** A key's word. @param {WhyHeader} header @param {number} at */
function keyName({keys}, at) {
  return element("bdi", {class: "av-split-name", title: keys[at]}, keys[at]);
}

/** The bar of a key: what adds to the right of 0, what takes away to its left.
 * @param {KeyRow} row @param {string[]} names @param {number} down @param {number} full */
function segments({parts, score}, names, down, full) {
  const at = (/** @type {number} */ number) => ((number + down) / full) * 100;
  let [right, left] = [0, 0];
  const pieces = parts.map((one, part) => {
    const from = one < 0 ? (left += one) : (right += one) - one;
    const style = `left: ${at(from)}%; width: ${(Math.abs(one) / full) * 100}%`;
    return element("i", {class: one < 0 ? "av-less" : "av-more", "data-part": names[part], style});
  });
  return element(
    "span",
    {class: "av-split-lane", "aria-hidden": "true"},
    ...pieces,
    element("u", {style: `left: ${at(0)}%`}),
    element("b", {style: `left: ${at(score)}%`}),
  );
}
