// The tokens in a line, with arcs: above it what a token looks at, below it who looks at the token.

import {drawEdges} from "./edges.js";
import {element, focusOne, isPointing, placeByKey, within} from "./element.js";
import {centreAt, createLine, measureLine, showPlace, turnTo} from "./line.js";
import {MixedHead} from "../data/mixing.js";
import {hasAny} from "../data/store.js";
import {createEnds} from "../overview/ends.js";
import {createOverview} from "../overview/overview.js";

/** @import {End} from "../overview/ends.js"
 * @import {Overview, Sight} from "../overview/overview.js"
 * @import {Line} from "./line.js"
 * @import {Part, Pair, State, View} from "./view.js"
 * @import {Places} from "../data/head.js"
 * @import {Axis} from "../data/tokens.js" */

/** @typedef {Pick<View, "store" | "recording" | "now" | "colours" | "fonts" | "active" | "point" | "pin">} StripView */

/** @typedef {object} Strip
 * @property {StripView} view
 * @property {HTMLElement} node
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} scroller
 * @property {HTMLElement} hint
 * @property {Line[]} lines  one, or of cross-attention that of the keys and that of the queries
 * @property {string} revealed  the link that was last scrolled into sight
 * @property {Overview} overview
 * @property {ReturnType<typeof createEnds>} ends
 * @property {(sight: Sight | null) => void} onSight */

/** @typedef {(place: number) => Pair} Roles  what a token of a line is when it is chosen */

const HINT =
  "Point at a token or press Enter on it: above, the tokens that it attends to; below, those that attend to it.";
const SIDES = "; arcs that go left are lower";
const CROSS_HINT = "Point at a token or press Enter on it to see only its links.";

/** The line of tokens; for cross-attention two lines, keys above queries. `onSight` hears which tokens of a text that
 * is longer than the screen are in sight.
 * @param {StripView} view @param {(sight: Sight | null) => void} [onSight] @returns {Part} */
export function createStrip(view, onSight = () => {}) {
  const canvas = element("canvas", {class: "av-arcs", "aria-hidden": "true"});
  const scroller = element("div", {class: "av-scroll"});
  const hint = element("p", {class: "av-hint"});
  const node = element(
    "section",
    {class: "av-strip", "data-testid": "explorer-arcs", "aria-label": "Tokens and arcs"},
    scroller,
    canvas,
    hint,
  );
  /** @type {Strip} */
  const strip = {
    ...{view, node, canvas, scroller, hint, lines: [], revealed: "", onSight},
    ...{overview: createOverview(() => strip), ends: createEnds((line, place) => goTo(strip, line, place))},
  };
  node.prepend(strip.overview.node);
  node.append(...strip.ends.nodes);
  scroller.onscroll = () => scrolled(strip);
  return {
    node,
    draw(changed) {
      if (hasAny(changed, "stream", "hideSpecial")) buildLines(strip);
      if (hasAny(changed, "stream", "hideSpecial", "size")) measure(strip);
      if (hasAny(changed, "stream", "hideSpecial") && strip.lines[0].axis.fromTheRight)
        scroller.scrollLeft = scroller.scrollWidth;
      drawEdges(strip);
      if (!node.matches(":hover")) reveal(strip, changed);
      tint(strip);
      strip.overview.paint(shownPair(view));
      showSight(strip);
    },
  };
}

/** @param {Strip} strip */
function buildLines(strip) {
  const {stream, rows, columns} = strip.view.now;
  strip.node.classList.toggle("av-cross", !stream.own);
  strip.lines = stream.own
    ? [buildLine(strip, stream.queries, rows, "Tokens", (place) => ({query: place, key: place}))]
    : [
        buildLine(strip, stream.keys, columns, "Keys", (place) => ({
          query: null,
          key: place,
        })),
        buildLine(strip, stream.queries, rows, "Queries", (place) => ({query: place, key: null})),
      ];
  strip.scroller.replaceChildren(...strip.lines.map((line) => line.node));
  if (stream.signed) {
    strip.hint.replaceChildren(
      element("strong", {class: "av-plus"}, "Carried"),
      " to a query, or ",
      element("strong", {class: "av-minus"}, "taken away"),
      "; the width is the size. Point at a token or press Enter on it: above, its sources; below, the tokens that get its value.",
    );
    return;
  }
  strip.hint.replaceChildren(
    element("span", {class: "av-query"}, "Orange is the query"),
    ", ",
    element("span", {class: "av-keys"}, "blue the key"),
    element("span", {class: "av-hint-more"}, stream.own ? `${SIDES}. ${HINT}` : `. ${CROSS_HINT}`),
  );
}

/** @param {Strip} strip @param {Axis} axis @param {Places} places @param {string} label @param {Roles} roles */
function buildLine(strip, axis, places, label, roles) {
  const {view} = strip;
  const line = createLine(axis, places, label);
  const placeOf = (/** @type {Event} */ event) => {
    const token = within(event, ".av-token");
    return token ? Number(token.dataset["place"]) : null;
  };
  line.node.onpointerover = (event) => {
    const place = placeOf(event);
    if (place !== null && isPointing(event)) view.point(roles(place), true);
  };
  line.node.onpointerleave = () => view.point({query: null, key: null});
  line.node.onclick = (event) => {
    const place = placeOf(event);
    if (place !== null) pinToken(view, roles(place));
  };
  line.node.onkeydown = (event) => walk(strip, event, line, roles);
  return line;
}

/** Pin a token, or let it go where it is pinned already. @param {StripView} view @param {Pair} pair */
function pinToken(view, {query, key}) {
  const {state} = view.store;
  const again = state.query === query && state.key === key;
  view.pin(again ? {query: null, key: null} : {query, key}, {pair: false});
}

/** @param {Strip} strip @param {KeyboardEvent} event @param {Line} line @param {Roles} roles */
function walk(strip, event, line, roles) {
  const {view} = strip;
  const {places, tokens} = line;
  const at = places.indexOf(Number(within(event, ".av-token")?.dataset["place"]));
  const step = placeByKey(event.key, at, places.length, line.axis.fromTheRight);
  if (step !== null) {
    const place = places[Math.min(Math.max(step, 0), places.length - 1)];
    if (showPlace(line, place)) redraw(strip);
    focusOne(tokens.values(), tokens.get(place));
    view.point(roles(place), true);
  } else if (event.key === "Enter" || event.key === " ") {
    pinToken(view, roles(places[at]));
  } else if (event.key === "Escape") {
    view.point({query: null, key: null});
    view.pin({query: null, key: null}, {pair: false});
  } else {
    return;
  }
  event.preventDefault();
}

/** @param {Strip} strip */
function measure(strip) {
  for (const line of strip.lines) measureLine(line);
  strip.overview.fit();
  strip.canvas.style.top = `${strip.scroller.offsetTop}px`;
}

/** Show in the overview what is in sight, and lead to the ends of the link that aren't. @param {Strip} strip */
function showSight(strip) {
  strip.onSight(strip.overview.follow());
  const {query, key} = shownPair(strip.view);
  const {lines} = strip;
  /** @type {[role: "query" | "key", line: Line, place: number | null][]} */
  const both = [
    ["query", lines[lines.length - 1], query],
    ["key", lines[0], key],
  ];
  /** @type {End[]} */
  const ends = both.flatMap(([role, line, place]) => {
    const index = place === null ? -1 : line.places.indexOf(place);
    return place === null || index < 0 ? [] : [{role, line, place, at: centreAt(line, index)}];
  });
  strip.ends.show(strip.overview.node.hidden ? [] : ends, strip.scroller);
}

/** Scroll a token to the middle. @param {Strip} strip @param {Line} line @param {number} place */
function goTo(strip, line, place) {
  if (showPlace(line, place)) redraw(strip);
  strip.scroller.scrollLeft = Number(line.centres.get(place)) - strip.scroller.clientWidth / 2;
}

/** The line has other tokens than before: find out where they lie, and how they look. @param {Strip} strip */
function redraw(strip) {
  measure(strip);
  drawEdges(strip);
  tint(strip);
}

/** While a long text is scrolled, the tokens in sight come and those far from it go. @param {Strip} strip */
function scrolled(strip) {
  const {scroller, lines} = strip;
  const middle = scroller.scrollLeft + scroller.clientWidth / 2;
  const turned = lines.filter((line) => turnTo(line, middle, scroller.clientWidth));
  if (turned.length) measure(strip);
  const moved = turned.length === 1 && lines.length === 1 ? turned[0].moved : 0;
  if (moved) scroller.scrollLeft += moved;
  drawEdges(strip);
  if (turned.length) tint(strip);
  showSight(strip);
}

/** Scroll a token that was pointed at or chosen elsewhere into sight, with what it looks at where both fit; with
 * nothing pointed at, the link that is told.
 * @param {Strip} strip @param {Set<keyof State>} changed */
function reveal(strip, changed) {
  const {view, scroller, lines} = strip;
  const {query, key} = shownPair(view);
  const link = `${query} ${key}`;
  if (link === strip.revealed && !hasAny(changed, "query", "key", "overQuery", "overKey")) return;
  strip.revealed = link;
  const own = lines.length === 1;
  if (showPlace(lines.at(-1), query ?? (own ? key : null)) || (!own && showPlace(lines[0], key))) measure(strip);
  const places = [lines.at(-1)?.centres.get(query ?? -1), lines[0]?.centres.get(key ?? -1)].filter(
    (at) => at !== undefined,
  );
  const width = scroller.clientWidth;
  const hidden = places.some((at) => at < scroller.scrollLeft + 24 || at > scroller.scrollLeft + width - 24);
  if (!hidden) return;
  const fit = Math.max(...places) - Math.min(...places) < width - 60;
  scroller.scrollLeft = (fit ? (Math.max(...places) + Math.min(...places)) / 2 : places[0]) - width / 2;
}

/** What is pointed at or pinned; at rest the link that is told. @param {StripView} view @returns {Pair} */
function shownPair(view) {
  const active = view.active();
  return active.query === null && active.key === null ? (view.now.pair ?? active) : active;
}

/** Tint tokens with the key's colour as far as the active token looks at them, and frame the active ones.
 * @param {Strip} strip */
function tint({view, lines}) {
  const {head, stream} = view.now;
  const {query, key} = shownPair(view);
  const {query: pinnedQuery, key: pinnedKey} = view.store.state;
  lines.forEach((line, number) => {
    const [asKeys, asQueries] = [stream.own || number === 0, stream.own || number === 1];
    for (const [place, token] of line.tokens) {
      const at = asKeys && query !== null && head !== null ? head.at(query, place) : 0;
      const weight = head instanceof MixedHead ? Math.abs(at) / (head.most || 1) : at;
      const isQuery = asQueries && place === query;
      const isKey = asKeys && place === key && !isQuery;
      const isPinned = (asQueries && place === pinnedQuery) || (asKeys && place === pinnedKey);
      const look = `${weight < 0.01 ? 0 : weight.toFixed(2)} ${isQuery} ${isKey} ${isPinned}`;
      // Most tokens look as before: leaving them alone is what keeps pointing fast in a long text.
      if (line.looks.get(place) === look) continue;
      line.looks.set(place, look);
      token.style.setProperty("--av-weight", weight.toFixed(2));
      token.classList.toggle("av-is-query", isQuery);
      token.classList.toggle("av-is-key", isKey);
      token.setAttribute("aria-selected", String(isPinned));
    }
  });
}
