// Which links are drawn between the tokens of the strip: those of the active token, or else the head's heaviest.

import {drawArcs, drawLinks, drawNumbers} from "./arcs.js";
import {fitCanvas} from "./element.js";
import {MixedHead} from "../data/mixing.js";
import {lengthOf} from "../data/scale.js";

/** @import {ArcPlace, Edge} from "./arcs.js"
 * @import {Line} from "./line.js"
 * @import {Strip} from "./strip.js"
 * @import {AnyHead} from "../data/recording.js" */

// How far arcs may fall below the line of tokens, in pixels; the style sheet keeps the room there, and above it.
const BELOW = 46;
const MOST_EDGES = 120;
const FAINTEST_EDGE = 0.01;
const FAINTEST_OF_ROW = 0.002;

/** Draw the links of the tokens on the screen over the strip. @param {Strip} strip */
export function drawEdges(strip) {
  const {view, canvas, scroller, lines, node} = strip;
  node.classList.toggle("av-more-before", scroller.scrollLeft > 1);
  node.classList.toggle("av-more-after", scroller.scrollLeft + scroller.clientWidth < scroller.scrollWidth - 1);
  const {head, stream} = view.now;
  const width = scroller.clientWidth;
  const height = scroller.clientHeight;
  const context = fitCanvas(canvas, width, height);
  context.clearRect(0, 0, width, height);
  const active = view.active();
  const alone = active.query !== null || active.key !== null;
  node.classList.toggle("av-alone", alone);
  if (head === null || lines.length === 0) return;
  context.translate(-scroller.scrollLeft, 0);
  const links = {
    strongest: () => strongestEdges(strip, head),
    row: () => rowEdges(strip, head, active.query),
    column: () => columnEdges(strip, head, active.key),
    pair: () => pairEdges(strip, head),
  };
  if (stream.own) drawOwn(context, strip, links, alone);
  else drawCross(context, strip, links, alone);
}

/** The links of the active token's row and column, or the head's strongest ones.
 * @typedef {{strongest: () => Edge[], row: () => Edge[], column: () => Edge[], pair: () => Edge[]}} Links */

/** Arcs over one line of tokens: above it what the active one looks at, below it who looks at that.
 * @param {CanvasRenderingContext2D} context @param {Strip} strip @param {Links} links @param {boolean} alone */
function drawOwn(context, strip, links, alone) {
  const {colours, fonts} = strip.view;
  const signed = strip.view.now.head instanceof MixedHead;
  const {offsetTop, offsetHeight} = strip.lines[0].node;
  /** @type {ArcPlace} */
  const above = {y: offsetTop - 2, up: -1, room: offsetTop - 12, colours, font: fonts.small, faint: !alone, signed};
  /** @type {ArcPlace} */
  const below = {...above, y: offsetTop + offsetHeight + 2, up: 1, room: BELOW - 12};
  if (!alone) {
    drawArcs(context, links.strongest(), above);
    drawArcs(context, links.pair(), {...above, faint: false, bold: true});
    return;
  }
  for (const {edges, where} of [
    {edges: links.row(), where: above},
    {edges: links.column(), where: below},
  ]) {
    drawArcs(context, edges, where);
    drawNumbers(context, edges, where);
  }
}

/** Curves between a line of keys and the line of queries below it.
 * @param {CanvasRenderingContext2D} context @param {Strip} strip @param {Links} links @param {boolean} alone */
function drawCross(context, strip, links, alone) {
  const [keys, queries] = strip.lines.map((line) => line.node);
  const top = keys.offsetTop + keys.offsetHeight + 2;
  const where = {top, bottom: queries.offsetTop - 2, colours: strip.view.colours, faint: !alone};
  const edges = alone ? [...links.row(), ...links.column()] : links.strongest();
  drawLinks(context, edges, where);
  if (!alone) drawLinks(context, links.pair(), {...where, faint: false, bold: true});
}

/** The largest that a weight can be; without a softmax, the largest that there is. @param {AnyHead} head */
function unitOf(head) {
  return head instanceof MixedHead ? head.most || 1 : 1;
}

/** The link that is told of the head. @param {Strip} strip @param {AnyHead} head */
function pairEdges(strip, head) {
  const {pair} = strip.view.now;
  if (pair === null || head.isBlocked(pair.query, pair.key)) return [];
  const weight = head.at(pair.query, pair.key);
  const place = Math.min(1, Math.abs(weight) / unitOf(head));
  return edge(strip, pair.query, pair.key, weight).map((one) => ({...one, place}));
}

/** A link, where both of its tokens have a place on the screen.
 * @param {Strip} strip @param {number} query @param {number} key @param {number} weight @returns {Edge[]} */
function edge({lines}, query, key, weight) {
  const from = lines[lines.length - 1].centres.get(query);
  const to = lines[0].centres.get(key);
  return from === undefined || to === undefined ? [] : [{from, to, weight, place: 0}];
}

/** The head's heaviest links between tokens that are in sight. @param {Strip} strip @param {AnyHead} head */
function strongestEdges(strip, head) {
  const {rows, columns, stream} = strip.view.now;
  const {scrollLeft, clientWidth} = strip.scroller;
  const inSight = (/** @type {Line} */ {centres}) =>
    new Set(
      [...centres].filter(([, at]) => at >= scrollLeft && at <= scrollLeft + clientWidth).map(([place]) => place),
    );
  const [queries, keys] = [inSight(strip.lines[strip.lines.length - 1]), inSight(strip.lines[0])];
  const accepts = (/** @type {number} */ query, /** @type {number} */ key) => !stream.own || query !== key;
  const [seenRows, seenColumns] = [rows.filter((query) => queries.has(query)), columns.filter((key) => keys.has(key))];
  const cells = head
    .strongest(seenRows, seenColumns, MOST_EDGES, accepts)
    .filter(({weight}) => Math.abs(weight) >= FAINTEST_EDGE * unitOf(head));
  return visibleEdges(
    strip,
    cells.flatMap(({query, key, weight}) => edge(strip, query, key, weight)),
  );
}

/** @param {Strip} strip @param {AnyHead} head @param {number | null} query */
function rowEdges(strip, head, query) {
  if (query === null) return [];
  const keys = [...strip.lines[0].centres.keys()];
  return visibleEdges(
    strip,
    keys.flatMap((key) => edge(strip, query, key, head.at(query, key))),
  );
}

/** @param {Strip} strip @param {AnyHead} head @param {number | null} key */
function columnEdges(strip, head, key) {
  if (key === null) return [];
  const queries = [...strip.lines[strip.lines.length - 1].centres.keys()];
  return visibleEdges(
    strip,
    queries.flatMap((query) => edge(strip, query, key, head.at(query, key))),
  );
}

/** Those that can be seen, heaviest first, each with its strength on the screen.
 * @param {Strip} strip @param {Edge[]} edges */
function visibleEdges({view}, edges) {
  const {head, scale} = view.now;
  const seen = edges.filter(({weight}) => Math.abs(weight) >= FAINTEST_OF_ROW * (head === null ? 1 : unitOf(head)));
  seen.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).splice(MOST_EDGES);
  for (const one of seen) one.place = lengthOf(scale, one.weight, seen[0].weight);
  return seen;
}
