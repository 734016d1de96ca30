// What the reader does to the matrix: pointing, choosing, zooming and moving, and the same from the keyboard.

import {arrowStep, element, focused} from "./element.js";
import {cellUnder} from "./plot.js";
import {withoutWeight} from "../data/head.js";
import {MixedHead, carried, rowSums, shareOfSize, significant} from "../data/mixing.js";
import {weightText} from "../data/scale.js";
import {isWhole, panned, showing, zoomed} from "../data/viewport.js";

/** @import {Sight} from "../overview/overview.js"
 * @import {BlockView, createBlocks} from "./blocks.js"
 * @import {MatrixView} from "./matrix.js"
 * @import {Plot} from "./plot.js"
 * @import {View} from "./view.js"
 * @import {AnyHead} from "../data/recording.js"
 * @import {Viewport} from "../data/viewport.js" */

/**
 * @typedef {MatrixView & BlockView & Pick<View, "tooltip" | "active" | "point" | "pin" | "announceCell" | "room" | "resized">} MapView
 */

/** A press that may become a drag: where it began, and with two fingers how far apart they were.
 * @typedef {{x: number, y: number, window: Viewport, moved: boolean, apart: number}} Drag */

/** The matrix as heatmap.js keeps it; `show` draws another part of it, null all of it.
 * @typedef {object} MatrixMap
 * @property {MapView} view
 * @property {HTMLElement} node
 * @property {HTMLElement} stage
 * @property {HTMLCanvasElement} base
 * @property {HTMLCanvasElement} over
 * @property {HTMLElement} chosen  lies over the chosen pair's cell
 * @property {HTMLElement} zoom
 * @property {HTMLButtonElement} whole
 * @property {HTMLButtonElement} farther
 * @property {ReturnType<typeof createBlocks>} blocks
 * @property {Sight | null} sight  what is in sight of the line of tokens; null if it is everything
 * @property {Viewport} window
 * @property {Plot | null} plot  null until it has been drawn
 * @property {Drag | null} drag
 * @property {Map<number, [x: number, y: number]>} touches
 * @property {(window: Viewport | null) => void} show */

export const CLOSER = 0.75;

/** The cell under a pointer, as places in the matrix (not yet tokens), or null beside it.
 * @param {MatrixMap} map @param {MouseEvent} event */
function cellAt({plot, stage}, event) {
  if (plot === null) return null;
  const cell = cellUnder(plot, stage, event);
  return cell && {row: plot.window.top + cell.row, column: plot.window.left + cell.column};
}

/** Listen to pointer, wheel and keys on the matrix. @param {MatrixMap} map */
export function listenToMatrix(map) {
  const {stage, view} = map;
  stage.onpointermove = (event) => (map.drag ? drag(map, map.drag, event) : hover(map, event));
  stage.onpointerdown = (event) => startDrag(map, event);
  stage.onpointerup = stage.onpointercancel = (event) => endDrag(map, event);
  stage.onpointerleave = leave;
  stage.onblur = leave;
  stage.ondblclick = () => map.show(null);
  stage.onkeydown = (event) => press(map, event);
  // A listener of its own, because `onwheel` may not stop the page from scrolling.
  stage.addEventListener("wheel", (event) => wheel(map, event), {passive: false});
  function leave() {
    view.tooltip.hide();
    view.point({query: null, key: null});
  }
}

/** @param {MatrixMap} map @param {PointerEvent} event */
function hover(map, event) {
  const {view} = map;
  const {head} = view.now;
  const cell = head ? cellAt(map, event) : null;
  if (head === null || cell === null) {
    view.tooltip.hide();
    view.point({query: null, key: null});
    return;
  }
  const [query, place] = [view.now.rows[cell.row], view.now.columns[cell.column]];
  view.point({query, key: place});
  view.tooltip.show(event.clientX, event.clientY, ...describe(view, head, query, place));
}

/** @param {MapView} view @param {AnyHead} head @param {number} query @param {number} key */
function describe(view, head, query, key) {
  const {stream} = view.now;
  const from = element("bdi", {class: "av-query"}, stream.queries.names[query]);
  const to = element("bdi", {class: "av-keys"}, stream.keys.names[key]);
  if (head instanceof MixedHead && !head.isBlocked(query, key)) {
    const words = element("strong", {}, carried(head, query, key));
    const share = element("span", {class: "av-quiet"}, ` (${shareOfSize(head, query, key, view.now.columns)})`);
    const sums = element("span", {class: "av-quiet"}, rowSums(head, query, view.now.columns));
    const skip = query === key ? (head.skip?.[query] ?? 0) : 0;
    const beside = skip
      ? element("span", {class: "av-quiet"}, `of it ${significant(skip)} by the skip, beside the memory`)
      : null;
    const pair = element("span", {class: "av-pair"}, to, " \u2192 ", from);
    return [element("div", {class: "av-mixed"}, pair, element("span", {}, words, share), beside, sums)];
  }
  const number = element("strong", {}, withoutWeight(head, query, key) ?? weightText(head.at(query, key)));
  return [element("span", {class: "av-pair"}, from, " \u2192 ", to), number];
}

/** Two fingers pinch, one finger or the pressed button moves a zoomed matrix; a short press chooses.
 * @param {MatrixMap} map @param {PointerEvent} event */
function startDrag(map, event) {
  map.touches.set(event.pointerId, [event.clientX, event.clientY]);
  map.drag = {x: event.clientX, y: event.clientY, window: map.window, moved: false, apart: apart(map)};
  map.stage.setPointerCapture(event.pointerId);
}

/** @param {Pick<MatrixMap, "touches">} map */
function apart({touches}) {
  const [one, two] = [...touches.values()];
  return two ? Math.hypot(one[0] - two[0], one[1] - two[1]) : 0;
}

/** @param {MatrixMap} map @param {Drag} start @param {PointerEvent} event */
function drag(map, start, event) {
  const {plot} = map;
  map.touches.set(event.pointerId, [event.clientX, event.clientY]);
  const [across, down] = [event.clientX - start.x, event.clientY - start.y];
  if (Math.hypot(across, down) > 4) start.moved = true;
  if (start.apart) {
    const {window} = start;
    const closer = start.apart / Math.max(apart(map), 1);
    map.show(zoomed(window, closer, (window.top + window.bottom) / 2, (window.left + window.right) / 2));
  } else if (!start.moved || plot === null || isWhole(start.window)) {
    hover(map, event);
  } else {
    map.view.tooltip.hide();
    map.show(panned(start.window, -Math.round(down / plot.cell.height), -Math.round(across / plot.cell.width)));
  }
}

/** @param {MatrixMap} map @param {PointerEvent} event */
function endDrag(map, event) {
  map.touches.delete(event.pointerId);
  const {drag: start, view} = map;
  map.drag = null;
  if (!start || start.moved || event.type === "pointercancel") return;
  const cell = view.now.head ? cellAt(map, event) : null;
  if (cell) view.pin({query: view.now.rows[cell.row], key: view.now.columns[cell.column]}, {pair: true});
}

/** The wheel zooms a large matrix; a small one lets the page scroll, and so does one that can go no farther.
 * @param {MatrixMap} map @param {WheelEvent} event */
function wheel(map, event) {
  if (map.zoom.hidden || !map.plot) return;
  const cell = cellAt(map, event);
  const wanted =
    event.ctrlKey || document.activeElement === map.stage || focused(map.stage) === map.stage || !isWhole(map.window);
  if (cell === null || !wanted || (event.deltaY > 0 && isWhole(map.window))) return;
  event.preventDefault();
  const factor = Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY / 300)));
  map.show(zoomed(map.window, factor, cell.row, cell.column));
}

/** Zoom around the cell pointed at, or the middle. @param {MatrixMap} map @param {number} factor */
export function zoomAt(map, factor) {
  const {view, window} = map;
  const active = view.active();
  const [row, column] = [view.now.rows.indexOf(active.query ?? -1), view.now.columns.indexOf(active.key ?? -1)];
  map.show(
    zoomed(
      window,
      factor,
      row < 0 ? (window.top + window.bottom) / 2 : row,
      column < 0 ? (window.left + window.right) / 2 : column,
    ),
  );
}

/** @param {MatrixMap} map @param {KeyboardEvent} event */
function press(map, event) {
  const {view} = map;
  const {rows, columns} = view.now;
  const step = arrowStep(event.key);
  const active = view.active();
  if (step) {
    const [down, across] = step;
    if (event.shiftKey) map.show(panned(map.window, down * 3, across * 3));
    else {
      const row = Math.min(Math.max(rows.indexOf(active.query ?? -1) + down, 0), rows.length - 1);
      const column = Math.min(Math.max(columns.indexOf(active.key ?? -1) + across, 0), columns.length - 1);
      view.point({query: rows[row], key: columns[column]});
      view.announceCell(rows[row], columns[column]);
      map.show(showing(map.window, row, column));
    }
  } else if (event.key === "Enter" || event.key === " ") {
    if (active.query !== null && active.key !== null) view.pin(active, {pair: true});
  } else if (event.key === "Escape") view.pin({query: null, key: null}, {pair: false});
  else if (event.key === "+" || event.key === "=") zoomAt(map, CLOSER);
  else if (event.key === "-") zoomAt(map, 1 / CLOSER);
  else if (event.key === "0") map.show(null);
  else return;
  event.preventDefault();
}
