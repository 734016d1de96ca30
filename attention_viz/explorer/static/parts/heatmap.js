// The chosen head as a matrix: painting it, and what lies over it.

import {createSegments} from "../chat/segments.js";
import {layerNumber} from "../heads/numbers.js";
import {createBlocks} from "./blocks.js";
import {element, fitCanvas} from "./element.js";
import {CLOSER, listenToMatrix, zoomAt} from "./gestures.js";
import {paintLabel} from "./labels.js";
import {paintMatrix} from "./matrix.js";
import {edgeOf, frameCells, layMatrix} from "./plot.js";
import {MixedHead} from "../data/mixing.js";
import {fontsOf} from "./style.js";
import {hasAny} from "../data/store.js";
import {isWhole, wholeWindow} from "../data/viewport.js";

/** @import {MatrixMap, MapView} from "./gestures.js"
 * @import {Sight} from "../overview/overview.js"
 * @import {Part, State} from "./view.js"
 * @import {AnyHead, Stream} from "../data/recording.js"
 * @import {Viewport} from "../data/viewport.js" */

// What only lies over the matrix: pointing and choosing leave the matrix itself as it is.
/** @type {(keyof State)[]} */
const LIES_OVER = ["overQuery", "overKey", "overLine", "query", "key", "pairQuery", "pairKey", "pairChosen"];

/** @type {[text: string, label: string]} */
const TO_FULL_SCREEN = ["Full screen", "Full screen: the matrix alone"];
/** @type {[text: string, label: string]} */
const FROM_FULL_SCREEN = ["Close", "Exit full screen"];

// How many times as large as usual the type is on the screen alone, and in a window from a width on, in pixels.
const LARGER = {alone: 1.5, wide: 1.2, from: 1700};
// Around the matrix where it has the screen to itself, both sides together; the style sheet keeps it.
const MARGIN = 48;

/** The matrix: queries down, keys across; `mark` frames what is in sight of the line of tokens.
 * @param {MapView} view @returns {Part & {mark: (sight: Sight | null) => void}} */
export function createHeatmap(view) {
  const [base, over] = [
    element("canvas", {"aria-hidden": "true"}),
    element("canvas", {"aria-hidden": "true", class: "av-over"}),
  ];
  const stage = element(
    "div",
    {class: "av-stage", tabindex: "0", role: "application", "aria-roledescription": "attention matrix"},
    base,
    over,
  );
  // Where the chosen pair's cell is.
  const chosen = element("i", {class: "av-chosen-cell", hidden: true});
  stage.append(chosen);
  const {verb, title} = createTitle();
  const aside = element("p", {class: "av-quiet", "data-testid": "explorer-mixing", hidden: true});
  const whole = button("Whole", "Show the whole matrix", () => map.show(null));
  const closer = button("+", "Zoom in", () => zoomAt(map, CLOSER));
  const farther = button("\u2212", "Zoom out", () => zoomAt(map, 1 / CLOSER));
  const zoom = element("div", {class: "av-zoom"}, closer, farther, whole);
  const full = button(...TO_FULL_SCREEN, () => toggleFullScreen(node));
  full.dataset["testid"] = "explorer-full-screen";
  const blocks = createBlocks(view, () => showWindow(map, map.window));
  const segments = createSegments(view, (part) => showPart(map, part), view.resized);
  const node = element(
    "section",
    {class: "av-heatmap", "data-testid": "explorer-heatmap"},
    element("header", {}, title, element("div", {class: "av-zoom"}, segments.fold, zoom, full)),
    segments.part,
    segments.place,
    stage,
    aside,
    blocks.node,
  );
  /** @type {MatrixMap} */
  const map = {
    ...{view, node, stage, base, over, chosen, zoom, whole, farther, blocks},
    ...{window: wholeWindow(1, 1), plot: null, drag: null, touches: new Map(), sight: null},
    show: (window) => showWindow(map, window),
  };
  listenToMatrix(map);
  listenToScreen(map, full);
  return {
    node,
    mark: (sight) => markSight(map, sight),
    draw(changed) {
      const {stream, at} = view.now;
      verb.textContent = stream.signed ? " from " : " attend to ";
      aside.textContent = asideOfMixing(stream, at.layer, view.now.head);
      aside.hidden = aside.textContent === "";
      if (hasAny(changed, "stream", "hideSpecial")) map.window = everything(map);
      segments.draw(changed);
      node.toggleAttribute("data-folded", segments.folds());
      if ([...changed].some((name) => !LIES_OVER.includes(name))) drawBase(map);
      drawOver(map);
    },
  };
}

/** @param {MatrixMap} map @param {Pick<Viewport, "top" | "bottom" | "left" | "right"> | null} part  null for everything */
function showPart(map, part) {
  map.show(part && {...everything(map), ...part});
}

/** The matrix's title, and its verb. */
function createTitle() {
  const verb = element("span", {}, " attend to ");
  const [queries, keys] = [
    element("span", {class: "av-query"}, "Queries \u2193"),
    element("span", {class: "av-keys"}, "keys \u2192"),
  ];
  return {verb, title: element("h2", {}, queries, verb, keys)};
}

/** What has to be known of the matrix of a layer without a softmax.
 * @param {Stream} stream @param {number} layer @param {AnyHead | null} head */
function asideOfMixing({layers, longest, queries}, layer, head) {
  const {cells, small, convolved = 0} = layers[layer];
  if (cells === null && !small)
    return `This layer\u2019s matrix is drawn up to ${longest} tokens, and this text has ${queries.count}; shorten it.`;
  const mixed = convolved > 1 ? `The values already mix the last ${convolved} tokens, by a convolution before.` : "";
  const skips = head instanceof MixedHead && head.skip ? "Hatched: the diagonal adds the skip, beside the memory." : "";
  return [mixed, skips].filter(Boolean).join(" ");
}

/** @param {string} text @param {string} label @param {() => void} act */
function button(text, label, act) {
  return element("button", {type: "button", title: label, "aria-label": label, onclick: act}, text);
}

/** @param {HTMLElement} node */
function toggleFullScreen(node) {
  if (node.matches(":fullscreen")) document.exitFullscreen();
  else node.requestFullscreen();
}

/** Draw the matrix for the screen that it has, and give the focus back to its button when that is over.
 * @param {MatrixMap} map @param {HTMLButtonElement} full */
function listenToScreen({node, view}, full) {
  node.addEventListener("fullscreenchange", () => {
    const alone = node.matches(":fullscreen");
    const [text, label] = alone ? FROM_FULL_SCREEN : TO_FULL_SCREEN;
    full.textContent = text;
    full.title = full.ariaLabel = label;
    view.tooltip.into(alone ? node : null);
    view.resized();
    full.focus({preventScroll: true});
  });
  // Before the matrix takes the key for its own; most browsers close it by themselves, and tell nobody.
  node.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !node.matches(":fullscreen")) return;
      event.stopPropagation();
      document.exitFullscreen();
    },
    {capture: true},
  );
}

/** @param {MatrixMap} map */
function everything({view: {now}}) {
  return wholeWindow(now.rows.length, now.columns.length);
}

/** @param {MatrixMap} map */
function drawBase(map) {
  const {stage, base} = map;
  const view = sizedView(map);
  const {rows, columns} = view.now;
  const {layer, head: number} = view.now.at;
  const [width, room] = [map.node.clientWidth - (map.node.matches(":fullscreen") ? MARGIN : 0), roomFor(map) - 36];
  const context = fitCanvas(base, width, room);
  const plot = layMatrix(context, view, map.window, width, room, map.node.matches(":fullscreen"));
  map.plot = plot;
  const used = plot.top + plot.height + 4;
  context.clearRect(0, 0, width, room);
  stage.style.height = `${Math.min(used, room)}px`;
  stage.setAttribute(
    "aria-label",
    `Layer ${layerNumber(view.now.stream.layers, layer)} head ${number}: arrow keys move, Enter chooses a cell, plus and minus zoom, 0 shows the whole matrix`,
  );
  const {top, bottom, left, right} = map.window;
  const [shownRows, shownColumns] = [rows.subarray(top, bottom), columns.subarray(left, right)];
  const drawn = map.blocks.drawn(shownRows, shownColumns);
  if (drawn !== null) {
    const deepest = paintMatrix(context, view, drawn, plot, shownRows, shownColumns);
    map.blocks.tell(shownRows, shownColumns, deepest);
  }
  const whole = isWhole(map.window);
  map.zoom.hidden = rows.length * columns.length <= 400;
  map.whole.disabled = map.farther.disabled = whole;
}

/** The view, with larger type on a large screen. @param {MatrixMap} map @returns {MapView} */
function sizedView({node, view}) {
  const size = node.matches(":fullscreen") ? LARGER.alone : window.innerWidth >= LARGER.from ? LARGER.wide : 1;
  return size === 1 ? view : {...view, fonts: fontsOf(view.fonts.mono, size)};
}

/** How high the matrix may be: as high as the screen, where it has that to itself. @param {MatrixMap} map */
function roomFor({node, view}) {
  return node.matches(":fullscreen") ? node.clientHeight - MARGIN : view.room();
}

/** What lies over the matrix: the row and column under the pointer, the chosen pair, their labels.
 * @param {MatrixMap} map */
function drawOver(map) {
  const {over, plot, base, sight} = map;
  const view = sizedView(map);
  const context = fitCanvas(over, base.clientWidth, base.clientHeight);
  context.clearRect(0, 0, over.clientWidth, over.clientHeight);
  if (plot === null || view.now.head === null) return;
  const {stream, rows, columns} = view.now;
  const {colours} = view;
  const active = view.active();
  const [row, column] = [
    rows.indexOf(active.query ?? -1) - plot.window.top,
    columns.indexOf(active.key ?? -1) - plot.window.left,
  ];
  const {pair} = view.now;
  const chosen = {
    row: rows.indexOf(pair?.query ?? -1) - plot.window.top,
    column: columns.indexOf(pair?.key ?? -1) - plot.window.left,
  };
  placeOver(map.chosen, plot, chosen);
  if (sight !== null) frameSight(context, view, plot, sight);
  if (rows.length * columns.length > 1) frameCells(context, plot, chosen, colours.accent, 2);
  if (active.query !== null && row >= 0 && row < plot.down) {
    frameCells(context, plot, {row, column: null}, colours.query, plot.height / plot.down < 5 ? 1 : 1.5);
    paintLabel(context, view, plot, "row", row, stream.queries, active.query, true);
  }
  if (active.key !== null && column >= 0 && column < plot.across) {
    frameCells(context, plot, {row: null, column}, colours.key, plot.width / plot.across < 5 ? 1 : 1.5);
    paintLabel(context, view, plot, "column", column, stream.keys, active.key, true);
  }
}

/** Lay an element over a cell; hidden if the cell isn't in the window.
 * @param {HTMLElement} node @param {NonNullable<MatrixMap["plot"]>} plot @param {{row: number, column: number}} cell */
function placeOver(node, {left, top, width, height, down, across}, {row, column}) {
  node.hidden = row < 0 || row >= down || column < 0 || column >= across;
  const [x, y] = [edgeOf(column, across, width), edgeOf(row, down, height)];
  Object.assign(node.style, {left: `${left + x}px`, top: `${top + y}px`});
  Object.assign(node.style, {width: `${edgeOf(column + 1, across, width) - x}px`});
  Object.assign(node.style, {height: `${edgeOf(row + 1, down, height) - y}px`});
}

/** @param {MatrixMap} map @param {Sight | null} sight */
function markSight(map, sight) {
  if (String(Object.values(sight ?? {})) === String(Object.values(map.sight ?? {}))) return;
  map.sight = sight;
  drawOver(map);
}

/** A frame of strokes around what is in sight of the line of tokens, as far as the matrix shows it.
 * @param {CanvasRenderingContext2D} context @param {MapView} view
 * @param {NonNullable<MatrixMap["plot"]>} plot @param {Sight} sight */
function frameSight(context, {now: {rows, columns}, colours}, plot, {queries, keys}) {
  const {left, top, width, height, down, across, window} = plot;
  const [y, bottom] = queries.map((place, end) => ((rows.indexOf(place) - window.top + end) * height) / down);
  const [x, right] = keys.map((place, end) => ((columns.indexOf(place) - window.left + end) * width) / across);
  context.save();
  context.beginPath();
  context.rect(left - 2, top - 2, width + 4, height + 4);
  context.clip();
  Object.assign(context, {strokeStyle: colours.ink, lineWidth: 1});
  context.setLineDash([4, 3]);
  context.strokeRect(left + x, top + y, right - x, bottom - y);
  context.restore();
}

/** @param {MatrixMap} map @param {Viewport | null} window */
function showWindow(map, window) {
  map.window = window ?? everything(map);
  drawBase(map);
  drawOver(map);
}
