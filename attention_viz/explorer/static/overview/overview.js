// The whole text as a thin band, the told link over its full length, and a window to drag on what is in sight.

import {drawArcs, drawLinks} from "../parts/arcs.js";
import {element, fitCanvas} from "../parts/element.js";
import {centreAt} from "../parts/line.js";
import {MixedHead} from "../data/mixing.js";

/** @import {Line} from "../parts/line.js"
 * @import {StripView} from "../parts/strip.js"
 * @import {Pair} from "../parts/view.js" */

/** @typedef {{view: StripView, scroller: HTMLElement, lines: Line[]}} Scrolled */
/** @typedef {{queries: [first: number, last: number], keys: [first: number, last: number]}} Sight  positions in sight */

// The band of one line of tokens, the room for its arc, and the room between two bands, in pixels.
const [BAND, ARC, BETWEEN] = [7, 24, 22];
// The least that a token is drawn wide, and an end of the link.
const [LEAST_MARK, LEAST_END] = [0.5, 3];
// Lighter tokens are marked as all others.
const LEAST_WEIGHT = 0.01;
// How much of what is in sight a key moves.
const SIGHT_STEP = 0.3;

/** @typedef {ReturnType<typeof createOverview>} Overview */

/** The overview of what a scroller scrolls. @param {() => Scrolled} strip */
export function createOverview(strip) {
  const canvas = element("canvas", {"aria-hidden": "true"});
  const sight = element("div", {
    ...{class: "av-sight", role: "slider", tabindex: "0", "aria-label": "Part of the text in sight"},
    "aria-orientation": "horizontal",
  });
  const node = element("div", {class: "av-overview", "data-testid": "explorer-overview", hidden: true}, canvas, sight);
  listenToOverview(node, sight, strip);
  return {
    node,
    /** There only where the text is longer than what can be seen of it. */
    fit() {
      const {scroller, lines} = strip();
      node.hidden = lines.length === 0 || scroller.scrollWidth <= scroller.clientWidth + 1;
    },
    /** @param {Pair} pair  the link that is told */
    paint(pair) {
      if (!node.hidden) paintOverview(canvas, strip(), pair);
    },
    /** Move the window to what is in sight; tells what that is, null if it is everything.
     * @returns {Sight | null} */
    follow() {
      return node.hidden ? null : followSight(sight, strip());
    },
  };
}

/** @param {HTMLElement} sight @param {Scrolled} strip @returns {Sight} */
function followSight(sight, {scroller, lines}) {
  const {scrollLeft, clientWidth, scrollWidth} = scroller;
  sight.style.left = `${(100 * scrollLeft) / scrollWidth}%`;
  sight.style.width = `${(100 * clientWidth) / scrollWidth}%`;
  const [keys, queries] = [lines[0], lines[lines.length - 1]].map((line) => inSight(line, scrollLeft, clientWidth));
  const {places} = lines[lines.length - 1];
  const [first, last] = queries.map((place) => places.indexOf(place) + 1);
  sight.setAttribute("aria-valuemin", "1");
  sight.setAttribute("aria-valuemax", String(places.length));
  sight.setAttribute("aria-valuenow", String(first));
  sight.setAttribute("aria-valuetext", `tokens ${first} to ${last} of ${places.length}`);
  return {queries, keys};
}

/** The first and the last token whose middle is in sight. @param {Line} line @param {number} left
 * @param {number} width @returns {[first: number, last: number]} */
function inSight({centres}, left, width) {
  const seen = [...centres].filter(([, at]) => at >= left && at <= left + width).map(([place]) => place);
  const all = seen.length ? seen : [...centres.keys()];
  return [all[0], all[all.length - 1]];
}

/** @param {HTMLCanvasElement} canvas @param {Scrolled} strip @param {Pair} pair */
function paintOverview(canvas, {view, scroller, lines}, {query, key}) {
  const {colours, fonts, now} = view;
  const [width, own] = [scroller.clientWidth, lines.length === 1];
  const context = fitCanvas(canvas, width, own ? ARC + BAND : BAND + BETWEEN + BAND);
  context.clearRect(0, 0, width, canvas.clientHeight);
  if (!colours.query) return; // drawn before the style has come; it is drawn again then
  const across = width / scroller.scrollWidth;
  const [top, bottom] = own ? [ARC, ARC] : [0, BAND + BETWEEN];
  const [keys, queries] = [lines[0], lines[lines.length - 1]];
  paintBand(context, view, keys, {top, across, query});
  if (!own) paintBand(context, view, queries, {top: bottom, across, query: null});
  const [to, from] = [endAt(keys, key, across), endAt(queries, query, across)];
  if (to !== null) paintEnd(context, to, top, colours.key);
  if (from !== null) paintEnd(context, from, bottom, colours.query);
  if (to === null || from === null || key === null || query === null) return;
  // A link is told of before its head has been read.
  const edges = [{from, to, weight: now.head?.at(query, key) ?? 1, place: 0.15}];
  const how = {colours, faint: false, bold: true};
  if (own) {
    const signed = now.head instanceof MixedHead;
    drawArcs(context, edges, {...{y: ARC - 1, up: -1, room: ARC - 3, font: fonts.small, signed}, ...how});
  } else drawLinks(context, edges, {top: BAND + 1, bottom: bottom - 1, ...how});
}

/** Where an end of the link lies on the band; null where the line doesn't have it.
 * @param {Line} line @param {number | null} place @param {number} across */
function endAt(line, place, across) {
  const index = place === null ? -1 : line.places.indexOf(place);
  return index < 0 ? null : centreAt(line, index) * across;
}

/** One mark a token, in the key's colour as far as the query attends to it.
 * @param {CanvasRenderingContext2D} context @param {StripView} view @param {Line} line
 * @param {{top: number, across: number, query: number | null}} where */
function paintBand(context, {now: {head}, colours}, line, {top, across, query}) {
  const {places} = line;
  const most = head instanceof MixedHead ? head.most || 1 : 1;
  const middles = Array.from(places, (_, index) => centreAt(line, index) * across);
  const [start, end] = [middles[0], middles[middles.length - 1]];
  // Of more tokens than pixels no mark of one could be seen.
  const dense = places.length > Math.abs(end - start);
  context.fillStyle = colours.line;
  if (dense) context.fillRect(Math.min(start, end), top, Math.abs(end - start), BAND);
  places.forEach((place, index) => {
    const [before, here, after] = [middles[index - 1], middles[index], middles[index + 1]];
    const wide = Math.abs((after ?? here) - (before ?? here)) / (index > 0 && index < places.length - 1 ? 2 : 1);
    const drawn = Math.max(LEAST_MARK, wide > 3 ? wide - 1 : wide);
    context.fillStyle = colours.line;
    if (!dense) context.fillRect(here - drawn / 2, top, drawn, BAND);
    const weight = query === null || head === null ? 0 : Math.min(1, Math.abs(head.at(query, place)) / most);
    if (weight < LEAST_WEIGHT) return;
    context.fillStyle = colours.key;
    context.globalAlpha = Math.sqrt(weight);
    context.fillRect(here - Math.max(1, drawn) / 2, top, Math.max(1, drawn), BAND);
    context.globalAlpha = 1;
  });
}

/** @param {CanvasRenderingContext2D} context @param {number} at @param {number} top @param {string} colour */
function paintEnd(context, at, top, colour) {
  context.fillStyle = colour;
  context.fillRect(at - LEAST_END / 2, top - 2, LEAST_END, BAND + 2);
}

/** A press beside the window brings it there, a drag moves it, and so do keys.
 * @param {HTMLElement} node @param {HTMLElement} sight @param {() => Scrolled} strip */
function listenToOverview(node, sight, strip) {
  /** @type {{x: number, left: number} | null} */
  let drag = null;
  const across = () => strip().scroller.scrollWidth / Math.max(1, node.clientWidth);
  node.onpointerdown = (event) => {
    if (event.button !== 0) return;
    const {scroller} = strip();
    const box = sight.getBoundingClientRect();
    if (event.clientX < box.left || event.clientX > box.right) {
      const at = (event.clientX - node.getBoundingClientRect().left) * across();
      scroller.scrollLeft = at - scroller.clientWidth / 2;
    }
    drag = {x: event.clientX, left: scroller.scrollLeft};
    node.setPointerCapture(event.pointerId);
    sight.focus({preventScroll: true});
    event.preventDefault();
  };
  node.onpointermove = (event) => {
    if (drag) strip().scroller.scrollLeft = drag.left + (event.clientX - drag.x) * across();
  };
  node.onpointerup = node.onpointercancel = () => (drag = null);
  sight.onkeydown = (event) => {
    const {scroller, lines} = strip();
    const to = leftByKey(event.key, scroller, lines[0].axis.fromTheRight);
    if (to === null) return;
    scroller.scrollLeft = to;
    event.preventDefault();
  };
}

/** Where a key scrolls to; null for any other key. Left and right are those of the screen; the others go on or back
 * in the text.
 * @param {string} key @param {Pick<HTMLElement, "scrollLeft" | "clientWidth" | "scrollWidth">} scroller
 * @param {boolean} fromTheRight */
export function leftByKey(key, {scrollLeft, clientWidth, scrollWidth}, fromTheRight) {
  const on = fromTheRight ? -1 : 1;
  const [first, last] = fromTheRight ? [scrollWidth, 0] : [0, scrollWidth];
  const steps = new Map([
    ["ArrowLeft", scrollLeft - SIGHT_STEP * clientWidth],
    ["ArrowRight", scrollLeft + SIGHT_STEP * clientWidth],
    ["ArrowUp", scrollLeft + on * SIGHT_STEP * clientWidth],
    ["ArrowDown", scrollLeft - on * SIGHT_STEP * clientWidth],
    ["PageUp", scrollLeft + on * clientWidth],
    ["PageDown", scrollLeft - on * clientWidth],
    ["Home", first],
    ["End", last],
  ]);
  return steps.get(key) ?? null;
}
