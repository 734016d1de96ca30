// Which heads link one token to another: all heads ranked by that one weight.

import {element, within} from "./element.js";
import {createPicker} from "./picker.js";
import {significant} from "../data/mixing.js";
import {weightText} from "../data/scale.js";
import {hasAny} from "../data/store.js";

/** @import {Part, View, Writes} from "./view.js"
 * @import {RankedHead} from "../heads/ranking.js" */

/** @typedef {Pick<View, "recording" | "now" | "pin" | "choose"> & Writes<"query" | "key" | "pairQuery" | "pairKey" | "pairChosen">} SearchView */

const MOST_HEADS = 10;
const ARRIVING = "From the layers loaded so far:";
const FROM_LOADED = "From the heads loaded here:";

/** Two pickers and a ranked list; choosing a cell of the matrix fills the pickers.
 * @param {SearchView} view @returns {Part} */
export function createSearch(view) {
  const {store} = view;
  // Both are then chosen here: a token pinned alone would have its own key.
  const own = {query: null, key: null, pairChosen: true};
  const query = createPicker("av-query", "Query token", (place) => store.set({...own, pairQuery: place}));
  const key = createPicker("av-keys", "Key token", (place) => store.set({...own, pairKey: place}));
  const list = element("ol", {});
  const title = element("h2", {}, "Which heads link", query.node, "to", key.node);
  const node = element(
    "section",
    {class: "av-search", "data-testid": "explorer-search", "aria-label": "Find heads"},
    title,
    list,
  );
  list.onclick = (event) => {
    const button = within(event, "button[data-head]");
    if (!button) return;
    const {pairQuery, pairKey} = store.state;
    view.pin({query: pairQuery, key: pairKey}, {pair: true});
    view.choose({layer: Number(button.dataset["layer"]), head: Number(button.dataset["head"])});
  };
  return {
    node,
    draw(changed) {
      const {stream} = view.now;
      const {query: pairQuery, key: pairKey} = pairOn(view);
      if (changed.has("stream")) {
        query.fill(stream.queries);
        key.fill(stream.keys);
      }
      if (!hasAny(changed, "stream", "pairQuery", "pairKey", "pairChosen", "preview", "loaded", "layer", "head"))
        return;
      query.show(pairQuery);
      key.show(pairKey);
      rank(view, list);
    },
  };
}

/** The pair whose heads are listed: the one on the screen.
 * @param {SearchView} view @returns {{query: number | null, key: number | null}} */
function pairOn({now: {pair}, store: {state}}) {
  return pair ?? {query: state.pairQuery, key: state.pairKey};
}

/** @param {SearchView} view @param {HTMLElement} list */
function rank(view, list) {
  const {stream} = view.store.state;
  const {query: pairQuery, key: pairKey} = pairOn(view);
  const {layers} = view.now.stream;
  const pair = pairQuery !== null && pairKey !== null;
  const {ranked, complete} = pair ? view.recording.rank(stream, pairQuery, pairKey) : {ranked: [], complete: false};
  const most = view.now.stream.signed ? Math.abs(ranked[0]?.weight ?? 0) || 1 : 1;
  const none = complete ? "None: this cell is blocked." : "\u2026";
  const entries = ranked.length
    ? ranked.slice(0, MOST_HEADS).map((one) => rankedHead(view, one, most))
    : [element("li", {class: "av-quiet"}, none)];
  const total = layers.reduce((sum, {heads}) => sum + heads, 0);
  // The list keeps its height, so that nothing below it jumps.
  while (entries.length < Math.min(total, MOST_HEADS)) entries.push(element("li", {"aria-hidden": "true"}));
  const asking =
    pair && !complete && view.recording.header.long && !view.now.stream.signed ? askForAll(view, total) : null;
  const arriving = layers.some(({small}) => small) ? FROM_LOADED : ARRIVING;
  const first = asking ?? (pair && !complete && ranked.length ? element("li", {class: "av-quiet"}, arriving) : null);
  list.replaceChildren(...(first ? [first, ...entries.slice(0, -1)] : entries));
}

/** Of a long text not every head is here: a button that has the others asked, or words that say which were.
 * @param {SearchView} view @param {number} total */
function askForAll({recording, store}, total) {
  const {ask, header} = recording;
  if (ask === null) return element("li", {class: "av-quiet"}, FROM_LOADED);
  const {stream, pairQuery, pairKey} = store.state;
  const act = () => ask({of: header.long?.id ?? "", stream, query: Number(pairQuery), key: Number(pairKey)});
  return element(
    "li",
    {},
    element("button", {type: "button", class: "av-ask", onclick: act}, `Rank all ${total} heads`),
  );
}

/** @param {SearchView} view @param {RankedHead} ranked @param {number} most  what a full bar stands for */
function rankedHead(view, {layer, head, weight}, most) {
  const {stream} = view.now;
  const {state} = view.store;
  const fillBar = element("span", {class: "av-fill av-accent-fill"});
  fillBar.style.width = `${100 * Math.min(1, Math.abs(weight) / most)}%`;
  const chosen = layer === state.layer && head === state.head;
  return element(
    "li",
    {},
    element(
      "button",
      {type: "button", "data-layer": layer, "data-head": head, "aria-current": chosen ? "true" : null},
      element("span", {}, view.recording.headShort(stream, layer, head, false)),
      element("span", {class: "av-track"}, fillBar),
      element("span", {class: "av-number"}, stream.signed ? significant(weight) : weightText(weight)),
    ),
  );
}
