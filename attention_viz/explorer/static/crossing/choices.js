// Two texts: for each word that is written, the source word that each head attends to most, and which words change
// places.

import {element, isPointing, within} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {hasAny} from "../data/store.js";
import {layerNumber} from "../heads/numbers.js";

/** @import {Part, View} from "../parts/view.js"
 * @import {Stream} from "../data/recording.js" */

/** @typedef {Pick<View, "store" | "recording" | "now" | "choose" | "preview" | "take">} ChoicesView */
/** The two heaviest keys of a row. @typedef {{key: number, weight: number, next: {key: number, weight: number} | null}} Choice */
/** @typedef {{at: (query: number, key: number) => number}} Weights */
/** A head with its choices, in the order of the words. @typedef {{layer: number, head: number, choices: Choice[]}} Chooser */

const MOST_CHOOSING = 4;
// A word counts as moved if its head is as sure as this.
const SURE_ENOUGH = 0.5;
// With less than this, a head attends to no source word to speak of.
const FAINT_CHOICE = 0.1;

/** The two keys that a row gives most to; of equal ones the earlier. @param {Weights} head @param {number} query @param {Iterable<number>} keys
 * @returns {Choice} */
export function strongestTwo(head, query, keys) {
  /** @type {Choice["next"][]} */
  let [best, next] = [null, null];
  for (const key of keys) {
    const one = {key, weight: head.at(query, key)};
    if (best === null || one.weight > best.weight) [best, next] = [one, best];
    else if (next === null || one.weight > next.weight) next = one;
  }
  return {...(best ?? {key: 0, weight: 0}), next};
}

/** Neighbours that come from source words in the other order, as runs of places among the words.
 * @param {Pick<Choice, "key" | "weight">[]} choices @returns {[first: number, last: number][]} */
export function reorderings(choices) {
  /** @type {[number, number][]} */
  const runs = [];
  for (let at = 1; at < choices.length; at++) {
    const [before, here] = [choices[at - 1], choices[at]];
    if (here.key >= before.key || Math.min(here.weight, before.weight) < SURE_ENOUGH) continue;
    const last = runs.at(-1);
    if (last?.[1] === at - 1) last[1] = at;
    else runs.push([at - 1, at]);
  }
  return runs;
}

/** @param {ChoicesView} view @returns {Part} */
export function createChoices(view) {
  const table = element("table", {class: "av-choices"});
  const moved = element("p", {class: "av-quiet", "data-testid": "reorderings"});
  const axes = element("span", {class: "av-axes"}, "for each output word, by head");
  const title = element("header", {}, element("h2", {}, "Strongest source word ", axes));
  const node = element("section", {class: "av-list av-choices-part", "data-testid": "choices"}, title, table, moved);
  const meant = (/** @type {Event} */ event) => {
    const cell = within(event, "[data-head]");
    if (!cell) return null;
    const [layer, head, query, key] = ["layer", "head", "query", "key"].map((name) =>
      Number(cell.dataset[name] ?? NaN),
    );
    return {stream: view.now.stream.name, layer, head, query: orNone(query), key: orNone(key)};
  };
  table.onpointerover = (event) => {
    if (isPointing(event)) view.preview(meant(event));
  };
  table.onpointerleave = () => view.preview(null);
  table.onclick = (event) => {
    const wanted = meant(event);
    if (wanted && wanted.query === null) view.choose({layer: wanted.layer, head: wanted.head});
    else if (wanted) view.take(wanted);
  };
  return {
    node,
    draw(changed) {
      // Not at a preview: what is pointed at stays where it is.
      if (!hasAny(changed, "stream", "loaded", "layer", "head", "hideSpecial")) return;
      const {stream, rows} = view.now;
      const words = [...rows].filter((query) => stream.queries.words[query]);
      const heads = choosers(view, words);
      table.replaceChildren(...choicesTable(view, words, heads));
      const {layer, head} = view.store.state;
      const own = heads.find((one) => one.layer === layer && one.head === head);
      moved.replaceChildren(...faintNote(heads), ...(own ? movedWords(stream, words, own) : []));
    },
  };
}

/** @param {number} number */
function orNone(number) {
  return Number.isNaN(number) ? null : number;
}

/** The heads that are surest of their source words, and the chosen one; in the model's order.
 * @param {ChoicesView} view @param {number[]} words */
function choosers({recording, now: {stream, columns}, store: {state}}, words) {
  const keys = [...columns].filter((key) => stream.keys.words[key]);
  const all = stream.layers.flatMap(({heads}, layer) =>
    Array.from({length: heads}, (_, number) => {
      const head = recording.head({stream: stream.name, layer, head: number});
      if (head === null) return [];
      return [{layer, head: number, choices: words.map((query) => strongestTwo(head, query, keys))}];
    }).flat(),
  );
  const sureness = (/** @type {Chooser} */ {choices, layer, head}) =>
    layer === state.layer && head === state.head ? Infinity : choices.reduce((sum, {weight}) => sum + weight, 0);
  const best = all.sort((one, other) => sureness(other) - sureness(one)).slice(0, MOST_CHOOSING);
  return best.sort((one, other) => one.layer - other.layer || one.head - other.head);
}

/** @param {ChoicesView} view @param {number[]} words @param {Chooser[]} heads */
function choicesTable({now: {stream}, store: {state}}, words, heads) {
  const named = (/** @type {Chooser} */ {layer, head}) => `${layerNumber(stream.layers, layer)}\u00b7${head}`;
  const isChosen = (/** @type {Chooser} */ {layer, head}) => layer === state.layer && head === state.head;
  const names = heads.map((one) => {
    const place = {"data-layer": one.layer, "data-head": one.head};
    const button = element("button", {type: "button", class: "av-pair", ...place}, named(one));
    return element("th", {scope: "col", class: isChosen(one) ? "av-current" : null}, button);
  });
  const corner = element("td", {class: "av-quiet"}, "predicts");
  const rows = words.map((query, at) =>
    element(
      "tr",
      {},
      element("th", {scope: "row"}, element("bdi", {class: "av-query"}, stream.queries.names[query])),
      ...heads.map((one) => choiceCell(stream, one, query, one.choices[at], named(one), isChosen(one))),
    ),
  );
  return [element("thead", {}, element("tr", {}, corner, ...names)), element("tbody", {}, ...rows)];
}

/** @param {Stream} stream @param {Chooser} one @param {number} query @param {Choice} choice @param {string} name
 * @param {boolean} chosen */
function choiceCell({queries, keys}, {layer, head}, query, {key, weight, next}, name, chosen) {
  const second = next ? `; then ${keys.names[next.key]} ${weightText(next.weight)}` : "";
  const title = `${name}: ${queries.names[query]} \u2192 ${keys.names[key]} ${weightText(weight)}${second}`;
  const place = {"data-layer": layer, "data-head": head, "data-query": query, "data-key": key};
  const fill = element("i", {class: "av-accent-fill"});
  fill.style.width = `${100 * Math.min(1, weight)}%`;
  const shown =
    weight < FAINT_CHOICE
      ? [element("span", {}, "\u2013")]
      : [element("bdi", {class: "av-keys"}, keys.names[key]), element("span", {}, weightText(weight)), fill];
  const button = element("button", {type: "button", title, ...place}, ...shown);
  return element("td", {class: chosen ? "av-current" : null}, button);
}

/** What a dash stands for, if there is one. @param {Chooser[]} heads */
function faintNote(heads) {
  const faint = heads.some(({choices}) => choices.some(({weight}) => weight < FAINT_CHOICE));
  return faint ? [`\u2013: no source word gets ${weightText(FAINT_CHOICE)}. `] : [];
}

/** Which words the chosen head has change places. @param {Stream} stream @param {number[]} words @param {Chooser} own */
function movedWords({queries, keys, layers}, words, {layer, head, choices}) {
  const name = `${layerNumber(layers, layer)}\u00b7${head}`;
  const runs = reorderings(choices);
  if (!runs.length) return [`In ${name}, no neighbours change places.`];
  const parts = runs.flatMap(([first, last], at) => {
    const from = choices.slice(first, last + 1).map(({key}) => key);
    return [
      at ? ", " : "",
      element("bdi", {class: "av-query"}, wordsOf(queries.spellings, words.slice(first, last + 1))),
      " from ",
      element(
        "bdi",
        {class: "av-keys"},
        wordsOf(
          keys.spellings,
          from.sort((one, other) => one - other),
        ),
      ),
    ];
  });
  return [`In ${name}, words change places: `, ...parts, "."];
}

/** @param {{text: string}[]} spellings @param {number[]} places */
function wordsOf(spellings, places) {
  return places.map((place) => spellings[place].text.trim()).join(" ");
}
