// Which heads link one token to another: all heads ranked by that one weight.

import {element, within} from "./element.js";
import {rankHeads} from "../data/ranking.js";
import {threeDigits} from "../data/scale.js";
import {hasAny} from "../data/store.js";

/**
 * @import {Part, View, Writes} from "./view.js"
 * @import {RankedHead} from "../data/ranking.js"
 * @import {Axis} from "../data/tokens.js"
 */

/** @typedef {Pick<View, "recording" | "now" | "pin" | "choose"> & Writes<"pairQuery" | "pairKey" | "pairChosen">} SearchView */

const MOST_HEADS = 10;

/**
 * Two pickers and a ranked list; choosing a cell of the matrix fills the pickers.
 * @param {SearchView} view
 * @returns {Part}
 */
export function createSearch(view) {
  const {store} = view;
  const query = element("select", {class: "av-query", "aria-label": "Query token"});
  const key = element("select", {class: "av-keys", "aria-label": "Key token"});
  query.onchange = () => store.set({pairQuery: Number(query.value), pairChosen: true});
  key.onchange = () => store.set({pairKey: Number(key.value), pairChosen: true});
  const list = element("ol", {});
  const title = element("h2", {}, "Which heads link", query, "to", key);
  const node = element(
    "section",
    {class: "av-search", "data-testid": "explorer-search", "aria-label": "Search for heads"},
    title,
    list,
  );
  list.onclick = (event) => {
    const button = within(event, "button");
    if (!button) return;
    const {pairQuery, pairKey} = store.state;
    view.pin({query: pairQuery, key: pairKey}, {pair: true});
    view.choose({layer: Number(button.dataset["layer"]), head: Number(button.dataset["head"])});
  };
  return {
    node,
    draw(changed) {
      const {stream} = view.now;
      const {pairQuery, pairKey} = store.state;
      if (changed.has("stream")) {
        fill(query, stream.queries);
        fill(key, stream.keys);
      }
      query.value = String(pairQuery);
      key.value = String(pairKey);
      if (hasAny(changed, "stream", "pairQuery", "pairKey", "loaded", "layer", "head")) rank(view, list);
    },
  };
}

/**
 * @param {HTMLSelectElement} select
 * @param {Axis} axis
 */
function fill(select, axis) {
  select.replaceChildren(
    ...axis.names.map((name, place) =>
      element("option", {value: place, dir: "auto", "aria-label": axis.spoken[place]}, name),
    ),
  );
}

/**
 * @param {SearchView} view
 * @param {HTMLElement} list
 */
function rank(view, list) {
  const {stream, pairQuery, pairKey} = view.store.state;
  const {layers} = view.now.stream;
  const pair = pairQuery !== null && pairKey !== null;
  const headAt = (/** @type {number} */ layer, /** @type {number} */ head) =>
    pair ? view.recording.head({stream, layer, head}) : null;
  const {ranked, complete} = rankHeads(layers, headAt, pairQuery ?? 0, pairKey ?? 0);
  const none = complete ? "No head may: the cell is blocked." : "\u2026";
  const entries = ranked.length
    ? ranked.slice(0, MOST_HEADS).map((one) => rankedHead(view, one))
    : [element("li", {class: "av-quiet"}, none)];
  const total = layers.reduce((sum, {heads}) => sum + heads, 0);
  // The list keeps its height, so that nothing below it jumps.
  while (entries.length < Math.min(total, MOST_HEADS)) entries.push(element("li", {"aria-hidden": "true"}));
  list.replaceChildren(...entries);
}

/**
 * @param {SearchView} view
 * @param {RankedHead} ranked
 */
function rankedHead(view, {layer, head, weight}) {
  const {state} = view.store;
  const fillBar = element("span", {class: "av-fill av-accent-fill"});
  fillBar.style.width = `${100 * weight}%`;
  const chosen = layer === state.layer && head === state.head;
  return element(
    "li",
    {},
    element(
      "button",
      {type: "button", "data-layer": layer, "data-head": head, "aria-current": chosen ? "true" : null},
      element("span", {}, view.recording.headName(layer, head)),
      element("span", {class: "av-track"}, fillBar),
      element("span", {class: "av-number"}, threeDigits(weight)),
    ),
  );
}
