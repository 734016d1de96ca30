// A score that no head wrote: all keys of its query, each split by word and place, and the query's parts times the key's.

import {drawExchange, drawPrepared} from "./exchange.js";
import {drawKeys} from "./keys.js";
import {begun, plainNumber, signed, wordAt} from "./reading.js";
import {ahead, inWords, partName, partsOf, rowsOf, sumInWords, turnedInWords, verdictOf} from "./verdict.js";
import {element} from "../parts/element.js";

/** @import {ExchangeView} from "./exchange.js"
 * @import {WhyHeader} from "./reading.js"
 * @import {StoryPress} from "./story.js"
 * @import {KeyRow, SplitHeader} from "./verdict.js" */

/** What is shown of a split, and what a press does: `compared` is the key beside the chosen one.
 * @typedef {ExchangeView & {compared: number | null, isSorted: boolean, compare: (at: number | null) => void,
 *   sort: () => void, open: (press: StoryPress) => void}} SplitView */

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
    headline(header, split, mine, names, other),
    element("p", {class: "av-split-lead"}, leadInWords(header, split, rows, mine, names, other)),
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

/** @param {WhyHeader} header @param {SplitHeader} split @param {KeyRow} mine @param {string[]} names
 * @param {KeyRow | null} other */
function headline(header, split, mine, names, other) {
  const {query, verb, key, than, reason} = verdictOf(header, split, other?.at);
  const blue = (/** @type {string} */ word) => element("span", {class: "av-keys"}, word);
  return element(
    "h1",
    {class: "av-question"},
    ...[element("span", {class: "av-query"}, begun(query)), ` ${verb} `, blue(key)],
    ...(than ? [" to ", blue(than)] : []),
    ` ${reason} `,
    element("small", {}, sumInWords(mine, names, header.units.key)),
  );
}

/** What decides: only differences between keys do. @param {WhyHeader} header @param {SplitHeader} split
 * @param {KeyRow[]} rows @param {KeyRow} mine @param {string[]} names @param {KeyRow | null} other */
function leadInWords(header, split, rows, mine, names, other) {
  const parts = `Layer ${split.layer}, head ${split.head}: no head came before it.`;
  const others = rows.filter((row) => row !== mine);
  if (names.length === 1 || !others.length) return parts;
  const lead = inWords(ahead(mine, other ? [other] : others), names, header.units.key);
  const many = other
    ? wordAt(header, "key", other.at)
    : others.length === 1
      ? "the other key"
      : `the mean of the ${others.length} other keys`;
  return `${parts} The softmax sees only differences between keys. Compared with ${many}: ${lead}.`;
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
    // A difference has both keys in its heading.
    const places = side === "query" ? [split.query] : other ? [mine.at, other.at] : [mine.at];
    const words = places.map((at) => wordAt(header, side, at)).join(" − ");
    if (names[part] === "word") return header.units[side] === "word" ? `word ${words}` : words;
    return names[part] === "place" ? `place ${places.join(" − ")}` : partName(names[part], header.units[side]);
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
          element("th", {scope: "row"}, "either’s biases"),
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
    element("h2", {}, "Query parts × key parts ", element("span", {class: "av-quiet"}, sum)),
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, element("td"), ...head)),
      element("tbody", {}, ...body, ...biases),
    ),
    ...(biases.length ? [element("p", {class: "av-note"}, biasesInWords(rest, mine, other, names))] : []),
  );
}

/** Why the biases of the table aren't those of the bars: those count the query's with the key's other parts.
 * @param {number} rest @param {KeyRow} mine @param {KeyRow | null} other @param {string[]} names */
function biasesInWords(rest, mine, other, names) {
  const part = names.indexOf("bias");
  const own = mine.parts[part] - (other?.parts[part] ?? 0);
  return `Either’s biases ${signed(rest)}: the key’s ${signed(own)}, as in the bars, and the query’s ${signed(rest - own)}, which the bars count with the key’s other parts.`;
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
    element("h2", {}, "Effect of the distance"),
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
