// The component: its parts in order, what they share, and the door through which a host speaks with it.

import {createBars} from "./parts/bars.js";
import {createControls} from "./parts/controls.js";
import {element} from "./parts/element.js";
import {createGrid} from "./parts/grid.js";
import {createHeatmap} from "./parts/heatmap.js";
import {createLegend, createNotes} from "./parts/legend.js";
import {lightness} from "./parts/matrix.js";
import {Recording} from "./data/recording.js";
import {channels, onRamp, pixel} from "./data/scale.js";
import {createSearch} from "./parts/search.js";
import {createStore} from "./data/store.js";
import {createStrip} from "./parts/strip.js";
import {createTable} from "./parts/table.js";
import {positions} from "./data/tokens.js";
import {createTooltip} from "./parts/tooltip.js";

const NOTHING_CHOSEN = {query: null, key: null, overQuery: null, overKey: null, pairQuery: null, pairKey: null};
// In longer texts most weights are so small that they only show on the logarithmic scale.
const MANY_TOKENS = 64;
// How high grid and matrix may be in a window `at` pixels high; a taller window gives them what it has more.
// Two lines of tokens take `lines` more than one.
const ROOM = {least: 384, at: 860, most: 640, lines: 44};
const EVERYTHING = ["stream", "layer", "head", "hideSpecial", "scale", "size", "theme", "loaded", "query", "key"];

/** The scale goes along to another text only where the reader chose it: a longer text begins on another one. */
const chosenScale = ({state: {scale}}) => ({scale, scaleChosen: true});

/**
 * Show packed bytes inside `host`.
 *
 * `theme()` tells "light" or "dark"; `onChoice({stream, layer, head})` hears what the reader chooses, at once;
 * `choice` and `settings` ({scale, scaleChosen, hideSpecial}) are what to begin with. Returns
 * {choose, refresh, destroy, choice, settings}: `choose` shows a head without telling `onChoice`, `refresh` looks at
 * theme and size again.
 */
export function mountExplorer(host, bytes, {theme, onChoice = () => {}, choice = null, settings = {}}) {
  const recording = new Recording(bytes);
  const root = element("div", {class: "av-explorer", "data-testid": "explorer"});
  const first = recording.nearest(choice ?? recording.header.choice ?? {});
  const longest = Math.max(...recording.streams.map(({keys}) => keys.count));
  const store = createStore({
    ...first,
    scale: longest > MANY_TOKENS ? "logarithmic" : "linear",
    scaleChosen: false,
    hideSpecial: false,
    ...settings,
    ...NOTHING_CHOSEN,
    loaded: 0,
    size: 0,
    theme: 0,
  });
  const view = {root, store, recording, now: null, onChoice, theme};
  addBehaviour(view);
  const parts = addParts(view);
  host.replaceChildren(root);
  readTheme(view);
  let gone = false;
  const draw = (changed) => {
    if (gone) return;
    if (changed.has("stream") || changed.has("layer")) loadLayers(view, () => gone);
    look(view);
    if (changed.has("loaded") || changed.has("stream")) settlePair(view);
    for (const part of parts) part.draw(changed);
  };
  store.listen(draw);
  const measure = () => store.set({size: `${root.clientWidth} ${view.room()}`});
  const observer = new ResizeObserver(measure);
  observer.observe(root);
  window.addEventListener("resize", measure);
  draw(new Set(EVERYTHING));
  return {
    choose: (wanted) => showHead(view, recording.nearest(wanted)),
    refresh() {
      // While the host moves the element it is on no page, and has no colours.
      if (!root.isConnected) return;
      readTheme(view);
      store.set({theme: store.state.theme + 1});
    },
    choice: () => ({stream: store.state.stream, layer: store.state.layer, head: store.state.head}),
    settings: () => ({hideSpecial: store.state.hideSpecial, ...(store.state.scaleChosen ? chosenScale(store) : {})}),
    destroy() {
      gone = true;
      observer.disconnect();
      window.removeEventListener("resize", measure);
      store.stop();
      root.remove();
    },
  };
}

/** What every part may ask of the others. */
function addBehaviour(view) {
  const {store, recording} = view;
  view.tooltip = createTooltip(view.root);
  view.live = element("p", {class: "av-live", "aria-live": "polite"});
  view.active = () => {
    const {query, key, overQuery, overKey} = store.state;
    return overQuery !== null || overKey !== null ? {query: overQuery, key: overKey} : {query, key};
  };
  view.point = ({query, key}) => store.set({overQuery: query, overKey: key});
  view.pin = ({query, key}, {pair}) => {
    store.set({query, key, ...(pair ? {pairQuery: query, pairKey: key} : query === null ? {} : {pairQuery: query})});
    if (query !== null) announceRow(view, query);
  };
  view.choose = (wanted) => {
    const next = recording.nearest({...store.state, ...wanted});
    showHead(view, next);
    view.onChoice(next);
  };
  view.announceCell = (query, key) => {
    const {head, stream} = view.now;
    if (head === null) return;
    const weight = head.isBlocked(query, key) ? "blocked" : head.at(query, key).toFixed(3);
    view.live.textContent = `${stream.queries.spoken[query]} looks at ${stream.keys.spoken[key]}, ${weight}`;
  };
  view.room = () => {
    const width = view.root.clientWidth;
    if (width < 720) return Math.min(Math.max(width, 260), 440);
    const least = ROOM.least - (view.now.stream.own ? 0 : ROOM.lines);
    return Math.min(Math.max(least + window.innerHeight - ROOM.at, least), ROOM.most);
  };
  view.hatching = (period, strength = 1) => ({
    ground: pixel(channels(view.colours.background)),
    hatch: pixel(onRamp([channels(view.colours.background), channels(view.colours.blocked)], strength)),
    period: Math.round(period * (window.devicePixelRatio || 1)),
  });
}

function addParts(view) {
  const [controls, legend, strip, grid] = [
    createControls(view),
    createLegend(view),
    createStrip(view),
    createGrid(view),
  ];
  const [heatmap, bars, notes, search, table] = [
    createHeatmap(view),
    createBars(view),
    createNotes(view),
    createSearch(view),
    createTable(view),
  ];
  controls.node.append(notes.sums, legend.node);
  const main = element("div", {class: "av-main"}, grid.node, heatmap.node, bars.node, search.node);
  view.root.append(controls.node, strip.node, main, notes.node, table.node, view.live);
  return [controls, legend, strip, grid, heatmap, bars, notes, search, table];
}

/** Everything that is drawn follows from this: the head on the screen and the tokens that are shown of it. */
function look(view) {
  const {store, recording} = view;
  const stream = recording.stream(store.state.stream);
  const head = recording.head(store.state);
  const [rows, columns] = [
    positions(stream.queries, store.state.hideSpecial),
    positions(stream.keys, store.state.hideSpecial),
  ];
  const maximum = store.state.scale !== "maximum" ? 1 : head === null ? 0 : head.maximum(rows, columns);
  view.now = {stream, head, rows, columns, maximum};
}

function showHead({store}, {stream, layer, head}) {
  const elsewhere = stream === store.state.stream ? {} : NOTHING_CHOSEN;
  store.set({...elsewhere, stream, layer, head});
}

/** Read the layer on the screen first, then the others, one after another so that the page stays awake. */
async function loadLayers(view, gone) {
  const {store, recording} = view;
  const {stream, layer} = store.state;
  const others = recording
    .stream(stream)
    .layers.map((_, number) => number)
    .filter((number) => number !== layer);
  for (const number of [layer, ...others]) {
    if (gone() || store.state.stream !== stream) return;
    const before = recording.layers.get(`${stream} ${number}`)?.ready;
    await recording.load(stream, number);
    if (!before && !gone()) store.set({loaded: store.state.loaded + 1});
  }
}

/** Until the reader has chosen two tokens, search for the pair that the head links most. */
function settlePair(view) {
  const {head, rows, columns, stream} = view.now;
  if (view.store.state.pairQuery !== null || head === null) return;
  const plain = (query, key) =>
    !stream.queries.dimmed[query] && !stream.keys.dimmed[key] && !(stream.own && query === key);
  // A text of one word has no pair: its word with itself.
  const firstPlain = (places, {dimmed}) => places.find((place) => !dimmed[place]) ?? places[0];
  const best = head.strongest(rows, columns, 1, plain)[0] ?? {
    query: firstPlain(rows, stream.queries),
    key: firstPlain(columns, stream.keys),
  };
  view.store.set({pairQuery: best.query, pairKey: best.key});
}

function announceRow(view, query) {
  const {head, columns, stream} = view.now;
  if (head === null) return;
  const best = columns.reduce((most, key) => (head.at(query, key) > head.at(query, most) ? key : most), columns[0]);
  const weight = head.at(query, best).toFixed(3);
  view.live.textContent = `${stream.queries.spoken[query]} looks mostly at ${stream.keys.spoken[best]}, ${weight}`;
}

/** Take the colours that the style sheet gives this theme, for what is drawn on canvases. */
function readTheme(view) {
  view.root.dataset.theme = view.theme();
  const style = getComputedStyle(view.root);
  const value = (name) => style.getPropertyValue(`--av-${name}`).trim();
  // Between two pages of the host the element has no style: the colours stay what they were.
  if (view.colours && !value("query")) return;
  const named = Object.fromEntries(
    ["background", "surface", "ink", "muted", "line", "accent", "query", "key", "blocked"].map((name) => [
      name,
      value(name),
    ]),
  );
  const rampText = value("ramp").split(/\s+/);
  const mono = value("mono");
  view.fonts = {small: `11px ${mono}`, strong: `700 11px ${mono}`, number: `10px ${mono}`, smallNumber: `9px ${mono}`};
  view.colours = {
    ...named,
    rampText,
    ramp: rampText.map(channels),
    inkLightness: lightness(channels(named.ink)),
    groundLightness: lightness(channels(named.background)),
  };
}
