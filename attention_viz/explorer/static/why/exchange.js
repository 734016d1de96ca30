// Other words at the key's place, each run by the model; and pairs that heads did prepare.

import {plainNumber, signed} from "./reading.js";
import {smallBar} from "./sum.js";
import {element} from "../parts/element.js";
import {weightText} from "../data/scale.js";

/** @import {WhyHeader} from "./reading.js"
 * @import {StoryPress} from "./story.js"
 * @import {SplitHeader} from "./verdict.js" */

/** A pair that other heads helped to write. @typedef {{words: string, pair: [number, number, number, number], stream: string, wrote: number, score: number}} PreparedPair */

/** `words` has each word's score and weight; null until they have come. `asked` is the word that is being run.
 * @typedef {{words: [string, number, number][] | null, refused: string, asked: string, typed: string,
 *   prepared: PreparedPair[] | null, put: (word: string) => void, type: (word: string) => void, open: (press: StoryPress) => void}} ExchangeView */

// So many rows wait until the model has run.
const WAITING = 10;

/** @param {WhyHeader} header @param {SplitHeader} split @param {ExchangeView} view @param {string} word */
export function drawExchange(header, split, view, word) {
  const isBoth = header.own && split.query === split.key;
  const about = isBoth ? "query and key change together; run by the model" : "the same place, run by the model";
  const title = element(
    "h2",
    {},
    `What if it were another ${header.units.key}? `,
    element("span", {class: "av-quiet"}, about),
  );
  const inside = split.fixed ? [element("p", {class: "av-note"}, split.fixed)] : exchanged(header, split, view, word);
  return element(
    "section",
    {class: "av-exchange", "aria-label": "Other words", "aria-busy": String(!split.fixed && view.words === null)},
    title,
    ...inside,
  );
}

/** @param {WhyHeader} header @param {SplitHeader} split @param {ExchangeView} view @param {string} word */
function exchanged(header, split, view, word) {
  const at = split.keys?.indexOf(split.key) ?? -1;
  /** @type {{word: string, number: number, weight: number, isOwn: boolean}[]} */
  const rows = (view.words ?? []).map(([one, number, weight]) => ({word: one, number, weight, isOwn: false}));
  if (rows.length && at >= 0)
    rows.push({word: header.keys[split.key], number: split.scores[at], weight: split.weights[at], isOwn: true});
  // At the same place, the distance adds the same to each word's score.
  const distance = split.beside?.[at] ?? 0;
  for (const row of rows) row.number += distance;
  rows.sort((one, other) => other.number - one.number);
  const lines = rows.map((row) =>
    element(
      "li",
      {class: row.isOwn ? "av-own-word" : ""},
      element("bdi", {title: row.word}, row.word),
      smallBar(row.number, rows),
      element("b", {}, plainNumber(row.number)),
      element("span", {class: "av-split-weight"}, weightText(row.weight)),
    ),
  );
  const waiting = Array.from({length: WAITING}, () => element("li", {class: "av-waits"}, element("i")));
  const input = element("input", {
    type: "text",
    name: "word",
    maxlength: 40,
    placeholder: "Try a word",
    "aria-label": "Another word",
    autocomplete: "off",
    oninput: (/** @type {InputEvent} */ event) => view.type(/** @type {HTMLInputElement} */ (event.target).value),
  });
  input.value = view.typed;
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (input.value.trim()) view.put(input.value.trim());
  };
  const told = view.asked
    ? `Running the model with “${view.asked}” …`
    : view.refused ||
      (view.words === null ? "Running the model with other words …" : `Score and weight; ${word} is in bold.`);
  return [
    element("ol", {class: "av-exchanged"}, ...(view.words === null ? waiting : lines)),
    element(
      "form",
      {onsubmit: send},
      input,
      element("button", {class: "av-try", type: "submit"}, "Run"),
      element("span", {class: "av-note", "aria-live": "polite"}, told),
    ),
  ];
}

/** @param {SplitHeader} split @param {ExchangeView} view */
export function drawPrepared({layer}, view) {
  const {prepared} = view;
  const none = prepared === null ? "Looking for them …" : "No finding of this text.";
  const pairs = (prepared ?? []).map(({words, pair, stream, wrote, score}) =>
    element(
      "button",
      {class: "av-step", type: "button", onclick: () => view.open({pair, stream})},
      `${words}, ${pair[0]}·${pair[1]} `,
      element("span", {class: "av-quiet"}, `${signed(wrote)} of ${plainNumber(score)}`),
    ),
  );
  return element(
    "section",
    {class: "av-prepared", "aria-label": "Prepared pairs"},
    element(
      "h2",
      {},
      "Pairs that other heads prepared ",
      element("span", {class: "av-quiet"}, "their part of the score"),
    ),
    pairs.length ? element("p", {class: "av-story"}, ...pairs) : element("p", {class: "av-note"}, none),
    element("p", {class: "av-note"}, `Layer ${layer} comes first, before any head to ablate or patch.`),
  );
}
