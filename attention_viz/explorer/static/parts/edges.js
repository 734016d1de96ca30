// Which links are drawn between the tokens of the strip: those of the active token, or else the head's heaviest.

import {drawArcs, drawLinks, drawNumbers} from "./arcs.js";
import {fitCanvas} from "./element.js";
import {lengthOf} from "../data/scale.js";

// How high arcs may rise above the line of tokens, and fall below it, in pixels; the style sheet keeps the room.
const ABOVE = 78;
const BELOW = 46;
const MOST_EDGES = 120;
const FAINTEST_EDGE = 0.01;

/** Draw the links of the tokens on the screen over the strip. */
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
  if (stream.own) drawOwn(context, strip, active, alone);
  else drawCross(context, strip, active, alone);
}

/** Arcs over one line of tokens: above it what the active one looks at, below it who looks at that. */
function drawOwn(context, strip, active, alone) {
  const {colours, fonts} = strip.view;
  const {offsetTop, offsetHeight} = strip.lines[0].node;
  const above = {y: offsetTop - 2, up: -1, room: ABOVE - 12, colours, font: fonts.small, faint: !alone};
  const below = {...above, y: offsetTop + offsetHeight + 2, up: 1, room: BELOW - 12};
  if (!alone) {
    drawArcs(context, strongestEdges(strip), above);
    return;
  }
  for (const [edges, where] of [
    [rowEdges(strip, active.query), above],
    [columnEdges(strip, active.key), below],
  ]) {
    drawArcs(context, edges, where);
    drawNumbers(context, edges, where);
  }
}

/** Curves between a line of keys and the line of queries below it. */
function drawCross(context, strip, active, alone) {
  const [keys, queries] = strip.lines.map((line) => line.node);
  const top = keys.offsetTop + keys.offsetHeight + 2;
  const where = {top, bottom: queries.offsetTop - 2, colours: strip.view.colours, faint: !alone};
  const edges = alone ? [...rowEdges(strip, active.query), ...columnEdges(strip, active.key)] : strongestEdges(strip);
  drawLinks(context, edges, where);
}

function edge({lines}, query, key, weight) {
  return {from: lines.at(-1).centres.get(query), to: lines[0].centres.get(key), weight, place: 0};
}

/** The head's heaviest links between tokens that are in sight. */
function strongestEdges(strip) {
  const {head, rows, columns, stream} = strip.view.now;
  const {scrollLeft, clientWidth} = strip.scroller;
  const inSight = ({centres}) =>
    new Set(
      [...centres].filter(([, at]) => at >= scrollLeft && at <= scrollLeft + clientWidth).map(([place]) => place),
    );
  const [queries, keys] = [inSight(strip.lines.at(-1)), inSight(strip.lines[0])];
  const accepts = (query, key) => (!stream.own || query !== key) && queries.has(query) && keys.has(key);
  const cells = head.strongest(rows, columns, MOST_EDGES, accepts).filter(({weight}) => weight >= FAINTEST_EDGE);
  return visibleEdges(
    strip,
    cells.map(({query, key, weight}) => edge(strip, query, key, weight)),
  );
}

function rowEdges(strip, query) {
  const {head, columns} = strip.view.now;
  return query === null
    ? []
    : visibleEdges(
        strip,
        Array.from(columns, (key) => edge(strip, query, key, head.at(query, key))),
      );
}

function columnEdges(strip, key) {
  const {head, rows} = strip.view.now;
  return key === null
    ? []
    : visibleEdges(
        strip,
        Array.from(rows, (query) => edge(strip, query, key, head.at(query, key))),
      );
}

/** Those that can be seen, heaviest first, each with its strength on the screen. */
function visibleEdges({view}, edges) {
  const seen = edges.filter(({weight, from, to}) => weight >= 0.002 && from !== undefined && to !== undefined);
  seen.sort((a, b) => b.weight - a.weight).splice(MOST_EDGES);
  for (const one of seen) one.place = lengthOf(view.store.state.scale, one.weight, seen[0].weight);
  return seen;
}
