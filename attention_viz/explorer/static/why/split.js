// A score that no head wrote: all keys of its query, each split by word and place, and the query's parts times the key's.

import {drawExchange, drawPrepared} from "./exchange.js";
import {plainNumber, signed, wordAt} from "./reading.js";
import {
  ahead,
  comparedWith,
  inWords,
  partName,
  partsOf,
  rowsOf,
  sumInWords,
  turnedInWords,
  verdictOf,
} from "./verdict.js";
import {element} from "../parts/element.js";
import {weightText} from "../data/scale.js";

/** @import {ExchangeView} from "./exchange.js"
 * @import {WhyHeader} from "./reading.js"
 * @import {StoryPress} from "./story.js"
 * @import {KeyRow, SplitHeader} from "./verdict.js" */

/** What is shown of a split, and what a press does: `compared` is the key beside the chosen one.
 * @typedef {ExchangeView & {compared: number | null, isSorted: boolean, compare: (at: number | null) => void,
 *   sort: () => void, open: (press: StoryPress) => void}} SplitView */

// Keys are sorted on request only beyond so many.
const SORTABLE = 12;

/** @param {WhyHeader} header @param {SplitHeader} split @param {SplitView} view @returns {HTMLElement[]} */
export function drawSplit(header, split, view) {
  if (split.refused) return [plainTitle(header), refusal(split.refused), asides(header, split, view)];
  const [rows, names] = [rowsOf(split), partsOf(split)];
  const mine = /** @type {KeyRow} */ (rows.find(({at}) => at === split.key) ?? rows[0]);
  const other = rows.find(({at}) => at === view.compared && at !== mine.at) ?? null;
  const right = element(
    "div",
    {class: "av-split-right"},
    ...(split.together ? [drawTurned(split, mine)] : []),
    ...(split.names.length > 1 && !split.together ? [drawMeets(header, split, mine, other)] : []),
    asides(header, split, view),
  );
  return [
    headline(header, split, mine, names),
    element("p", {class: "av-split-lead"}, leadInWords(header, split, rows, mine, names)),
    element("div", {class: "av-split"}, drawKeys(header, split, {rows, names, mine, other}, view), right),
  ];
}

/** @param {WhyHeader} header */
function plainTitle({more, total}) {
  return element("h1", {class: "av-question"}, `${more} scores ${plainNumber(total)}`);
}

/** @param {string} words */
function refusal(words) {
  const why = `${words[0].toUpperCase()}${words.slice(1)}.`;
  return element("section", {class: "av-meaning"}, element("h3", {}, "This score has no split"), element("p", {}, why));
}

/** @param {WhyHeader} header @param {SplitHeader} split @param {SplitView} view */
function asides(header, split, view) {
  const mine = wordAt(header, "key", split.key);
  return element("div", {}, drawExchange(header, split, view, mine), drawPrepared(split, view));
}

/** @param {WhyHeader} header @param {SplitHeader} split @param {KeyRow} mine @param {string[]} names */
function headline(header, split, mine, names) {
  const {query, verb, key, than, reason} = verdictOf(header, split);
  const blue = (/** @type {string} */ word) => element("span", {class: "av-keys"}, word);
  return element(
    "h1",
    {class: "av-question"},
    ...[element("span", {class: "av-query"}, capital(query)), ` ${verb} `, blue(key)],
    ...(than ? [" to ", blue(than)] : []),
    ` ${reason} `,
    element("small", {}, sumInWords(mine, names, header.units.key)),
  );
}

/** @param {string} words */
function capital(words) {
  return words.replace(/^the /, "The ");
}

/** What decides: only differences between keys do. @param {WhyHeader} header @param {SplitHeader} split
 * @param {KeyRow[]} rows @param {KeyRow} mine @param {string[]} names */
function leadInWords(header, split, rows, mine, names) {
  const parts = `Layer ${split.layer}, head ${split.head}: no head came before it.`;
  const others = rows.filter((row) => row !== mine);
  if (names.length === 1 || !others.length) return parts;
  const lead = inWords(ahead(mine, others), names, header.units.key);
  const many = others.length === 1 ? "the other key" : `the mean of the ${others.length} other keys`;
  return `${parts} The softmax sees only differences between keys. Beside ${many}: ${lead}.`;
}

/** @typedef {{rows: KeyRow[], names: string[], mine: KeyRow, other: KeyRow | null}} SplitKeys */

/** @param {WhyHeader} header @param {SplitHeader} split @param {SplitKeys} keys @param {SplitView} view */
function drawKeys(header, split, {rows, names, mine, other}, view) {
  const sum = (/** @type {KeyRow} */ {parts}, /** @type {number} */ sign) =>
    parts.reduce((total, one) => total + Math.max(0, sign * one), 0);
  const [up, down] = [
    Math.max(1e-9, ...rows.map((row) => sum(row, 1))),
    Math.max(0, ...rows.map((row) => sum(row, -1))),
  ];
  const [full, shown] = [up + down, view.isSorted ? [...rows].sort((one, two) => two.score - one.score) : rows];
  const chosen = wordAt(header, "key", mine.at);
  const keyRow = (/** @type {KeyRow} */ row) =>
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
      segments(row, names, down, full),
      element("span", {class: "av-split-score"}, plainNumber(row.score)),
      element("span", {class: "av-split-weight"}, weightText(row.weight)),
    );
  return element(
    "section",
    {class: "av-split-left", "aria-label": "Keys"},
    element(
      "header",
      {},
      element("h2", {}, `${rows.length === 1 ? "Its only key" : `All ${rows.length} keys`}, split the same way`),
      rows.length > SORTABLE
        ? element(
            "button",
            {class: "av-split-sort", type: "button", "aria-pressed": String(view.isSorted), onclick: view.sort},
            "Largest first",
          )
        : null,
    ),
    element("p", {class: "av-note"}, legendOf(header, names), element("span", {}, "grey takes away")),
    element(
      "div",
      {class: "av-split-key av-split-heads", "aria-hidden": "true"},
      ...["", "", "score", "weight"].map((word) => element("span", {}, word)),
    ),
    element("div", {class: "av-split-keys"}, ...shown.map(keyRow)),
    element(
      "p",
      {class: "av-split-told", "aria-live": "polite"},
      other
        ? comparedWith(header, mine, other, names)
        : rows.length > 1
          ? `Press a key to compare it with ${chosen}.`
          : "",
      other
        ? element(
            "button",
            {
              class: "av-link",
              type: "button",
              onclick: () => view.open({pair: [split.layer, split.head, split.query, other.at]}),
            },
            `Explain ${wordAt(header, "key", other.at)}`,
          )
        : null,
    ),
    ...notesOf(header, split, mine),
  );
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
      ? "Word: the score with both at one place. Distance: what the rotation between their places changes."
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

/** A key's word, numbered where it repeats. @param {WhyHeader} header @param {number} at */
function keyName({keys}, at) {
  const same = keys.flatMap((word, place) => (word === keys[at] ? [place] : []));
  const number = same.length > 1 ? String(same.indexOf(at) + 1) : "";
  const below = [...number].map((digit) => String.fromCharCode(0x2080 + Number(digit))).join("");
  return element("bdi", {class: "av-split-name", title: keys[at]}, keys[at] + below);
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

/** The query's parts times the key's, or their difference from another key's.
 * @param {WhyHeader} header @param {SplitHeader} split @param {KeyRow} mine @param {KeyRow | null} other */
function drawMeets(header, split, mine, other) {
  const {names, pairs, keys} = split;
  const row = (/** @type {KeyRow} */ one) => pairs[keys.indexOf(one.at)];
  const numbers = row(mine).map((one, at) => one - (other ? row(other)[at] : 0));
  const shown = names.flatMap((name, part) => (name === "bias" ? [] : [part]));
  const cell = (/** @type {number} */ query, /** @type {number} */ key) => numbers[query * names.length + key];
  const inside = shown.flatMap((query) => shown.map((key) => cell(query, key)));
  const total = numbers.reduce((sum, one) => sum + one, 0);
  const rest = total - inside.reduce((sum, one) => sum + one, 0);
  const full = Math.max(...inside.map(Math.abs), Math.abs(rest), 1e-9);
  const label = (/** @type {"query" | "key"} */ side, /** @type {number} */ part) => {
    const at = side === "query" ? split.query : mine.at;
    if (names[part] === "word") return `${header.units[side]} ${wordAt(header, side, at).replace(/^the /, "")}`;
    return names[part] === "place" ? `place ${at}` : partName(names[part], header.units[side]);
  };
  const painted = (/** @type {number} */ number) => {
    const share = Math.round((Math.abs(number) / full) * 46);
    const style = `background: color-mix(in oklab, var(--av-${number < 0 ? "less" : "more"}) ${share}%, var(--av-background))`;
    return element("td", {style}, signed(number));
  };
  const head = shown.map((part) => element("th", {class: "av-keys", scope: "col"}, label("key", part)));
  const body = shown.map((query) =>
    element(
      "tr",
      {},
      element("th", {class: "av-query", scope: "row"}, label("query", query)),
      ...shown.map((key) => painted(cell(query, key))),
    ),
  );
  const biases = names.includes("bias")
    ? [
        element(
          "tr",
          {},
          element("th", {scope: "row"}, "with biases"),
          Object.assign(painted(rest), {colSpan: shown.length}),
        ),
      ]
    : [];
  const sum = other
    ? `${wordAt(header, "key", mine.at)} less ${wordAt(header, "key", other.at)}: ${signed(total)} in all`
    : `they add up to ${plainNumber(total)}`;
  return element(
    "section",
    {class: "av-meets"},
    element("h2", {}, "What of the query meets what of the key ", element("span", {class: "av-quiet"}, sum)),
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, element("td"), ...head)),
      element("tbody", {}, ...body, ...biases),
    ),
  );
}

/** What the rotation does, where positions turn queries and keys.
 * @param {SplitHeader} split @param {KeyRow} mine */
function drawTurned(split, mine) {
  const lines = [
    ["At one place", plainNumber(mine.parts[0])],
    ["Rotation", signed(mine.parts[1])],
    ["Score", plainNumber(mine.score)],
  ];
  return element(
    "section",
    {class: "av-meets"},
    element("h2", {}, "What the distance does"),
    element("p", {}, turnedInWords(split, mine)),
    element(
      "table",
      {},
      element(
        "tbody",
        {},
        ...lines.map(([name, number]) =>
          element("tr", {}, element("th", {scope: "row"}, name), element("td", {}, number)),
        ),
      ),
    ),
  );
}
