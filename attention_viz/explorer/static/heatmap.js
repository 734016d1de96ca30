// The chosen head as a matrix that answers: hover, choose, zoom, move, and the same from the keyboard.

import {element, fitCanvas, threeDigits} from "./element.js";
import {edgeOf, layMatrix, paintLabel, paintMatrix} from "./matrix.js";
import {isWhole, panned, showing, wholeWindow, zoomed} from "./viewport.js";

const CLOSER = 0.75;

/** The matrix: queries down, keys across. */
export function createHeatmap(view) {
  const [base, over] = [element("canvas", {"aria-hidden": "true"}), element("canvas", {"aria-hidden": "true", class: "av-over"})];
  const stage = element("div", {class: "av-stage", tabindex: "0", role: "application", "aria-roledescription": "attention matrix"}, base, over);
  const title = element("h3", {}, element("span", {class: "av-query"}, "Queries \u2193"), " look at ", element("span", {class: "av-keys"}, "keys \u2192"));
  const map = {view, stage, base, over, window: null, plot: null, drag: null, touches: new Map()};
  const button = (text, label, act) => element("button", {type: "button", title: label, "aria-label": label, onclick: act}, text);
  map.whole = button("Whole", "Show the whole matrix", () => showWindow(map, null));
  map.closer = button("+", "Zoom in", () => zoomAt(map, CLOSER));
  map.farther = button("\u2212", "Zoom out", () => zoomAt(map, 1 / CLOSER));
  map.zoom = element("div", {class: "av-zoom"}, map.closer, map.farther, map.whole);
  const node = element("section", {class: "av-heatmap", "data-testid": "explorer-heatmap"}, element("header", {}, title, map.zoom), stage);
  map.node = node;
  listen(map);
  return {
    node,
    draw(changed) {
      if (["stream", "hideSpecial"].some((name) => changed.has(name))) map.window = null;
      const still = ["overQuery", "overKey", "query", "key", "pairQuery", "pairKey"];
      if ([...changed].some((name) => !still.includes(name))) drawBase(map);
      drawOver(map);
    },
  };
}

function drawBase(map) {
  const {view, stage, base} = map;
  const {rows, columns, head} = view.now;
  const {layer, head: number} = view.store.state;
  map.window ??= wholeWindow(rows.length, columns.length);
  const [width, room] = [map.node.clientWidth, view.room() - 36];
  const context = fitCanvas(base, width, room);
  map.plot = layMatrix(context, view, map.window, width, room);
  const used = map.plot.top + map.plot.height + 4;
  context.clearRect(0, 0, width, room);
  stage.style.height = `${Math.min(used, room)}px`;
  stage.setAttribute("aria-label", `Layer ${layer} head ${number}: arrow keys go from cell to cell, Enter chooses one, plus and minus zoom, 0 shows everything`);
  if (head !== null) paintMatrix(context, view, map.plot);
  const whole = isWhole(map.window);
  map.zoom.hidden = rows.length * columns.length <= 400;
  map.whole.disabled = map.farther.disabled = whole;
}

/** What lies over the matrix: the row and column under the pointer, the chosen pair, their labels. */
function drawOver({view, over, plot, base}) {
  const context = fitCanvas(over, base.clientWidth, base.clientHeight);
  context.clearRect(0, 0, over.clientWidth, over.clientHeight);
  if (plot === null || view.now.head === null) return;
  const {stream, rows, columns} = view.now;
  const {colours} = view;
  const active = view.active();
  const [row, column] = [rows.indexOf(active.query ?? -1) - plot.window.top, columns.indexOf(active.key ?? -1) - plot.window.left];
  const {pairQuery, pairKey} = view.store.state;
  if (rows.length * columns.length > 1) frame(context, plot, rows.indexOf(pairQuery ?? -1) - plot.window.top, columns.indexOf(pairKey ?? -1) - plot.window.left, colours.accent);
  if (row >= 0 && row < plot.down) {
    band(context, colours.query, (start, size) => [plot.left - 1, plot.top + start, plot.width + 2, size], row, plot.down, plot.height);
    paintLabel(context, view, plot, "row", row, stream.queries, active.query, true);
  }
  if (column >= 0 && column < plot.across) {
    band(context, colours.key, (start, size) => [plot.left + start, plot.top - 1, size, plot.height + 2], column, plot.across, plot.width);
    paintLabel(context, view, plot, "column", column, stream.keys, active.key, true);
  }
}

/** Frame a row or column; around thin ones the frame keeps its distance, so as not to cover them. */
function band(context, colour, box, index, count, size) {
  const [start, end] = [edgeOf(index, count, size), edgeOf(index + 1, count, size)];
  const distance = end - start < 5 ? 2.5 : 0.5;
  context.strokeStyle = colour;
  context.lineWidth = end - start < 5 ? 1 : 1.5;
  context.strokeRect(...box(start - distance, end - start + 2 * distance));
}

function frame(context, plot, row, column, colour) {
  if (row < 0 || column < 0 || row >= plot.down || column >= plot.across) return;
  const [left, right] = [edgeOf(column, plot.across, plot.width), edgeOf(column + 1, plot.across, plot.width)];
  const [top, bottom] = [edgeOf(row, plot.down, plot.height), edgeOf(row + 1, plot.down, plot.height)];
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.strokeRect(plot.left + left - 1, plot.top + top - 1, Math.max(right - left, 3) + 1, Math.max(bottom - top, 3) + 1);
}

/** The cell under a pointer, as places in the matrix (not yet tokens), or null beside it. */
function cellAt({plot, stage}, event) {
  const box = stage.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left - plot.left, event.clientY - box.top - plot.top];
  if (x < 0 || y < 0 || x >= plot.width || y >= plot.height) return null;
  const row = plot.window.top + Math.min(plot.down - 1, Math.floor((y * plot.down) / plot.height));
  const column = plot.window.left + Math.min(plot.across - 1, Math.floor((x * plot.across) / plot.width));
  return {row, column};
}

function listen(map) {
  const {stage, view} = map;
  stage.onpointermove = (event) => (map.drag ? drag(map, event) : hover(map, event));
  stage.onpointerdown = (event) => startDrag(map, event);
  stage.onpointerup = stage.onpointercancel = (event) => endDrag(map, event);
  stage.onpointerleave = () => leave(map);
  stage.onblur = () => leave(map);
  stage.ondblclick = () => showWindow(map, null);
  stage.onkeydown = (event) => key(map, event);
  // A listener of its own, because `onwheel` may not stop the page from scrolling.
  stage.addEventListener("wheel", (event) => wheel(map, event), {passive: false});
  function leave() {
    view.tooltip.hide();
    view.point({query: null, key: null});
  }
}

function hover(map, event) {
  const {view} = map;
  const cell = map.plot && view.now.head ? cellAt(map, event) : null;
  if (cell === null) {
    view.tooltip.hide();
    return view.point({query: null, key: null});
  }
  const [query, place] = [view.now.rows[cell.row], view.now.columns[cell.column]];
  view.point({query, key: place});
  return view.tooltip.show(event.clientX, event.clientY, ...describe(view, query, place));
}

function describe(view, query, key) {
  const {head, stream} = view.now;
  const from = element("bdi", {class: "av-query"}, stream.queries.names[query]);
  const to = element("bdi", {class: "av-keys"}, stream.keys.names[key]);
  const number = element("strong", {}, head.isBlocked(query, key) ? "blocked" : threeDigits(head.at(query, key)));
  return [element("span", {class: "av-pair"}, from, " \u2192 ", to), number];
}

/** Two fingers pinch, one finger or the pressed button moves a zoomed matrix; a short press chooses. */
function startDrag(map, event) {
  map.touches.set(event.pointerId, [event.clientX, event.clientY]);
  map.drag = {x: event.clientX, y: event.clientY, window: map.window, moved: false, apart: apart(map)};
  map.stage.setPointerCapture(event.pointerId);
}

function apart({touches}) {
  const [one, two] = [...touches.values()];
  return two ? Math.hypot(one[0] - two[0], one[1] - two[1]) : 0;
}

function drag(map, event) {
  const {drag: start, plot} = map;
  map.touches.set(event.pointerId, [event.clientX, event.clientY]);
  const [across, down] = [event.clientX - start.x, event.clientY - start.y];
  if (Math.hypot(across, down) > 4) start.moved = true;
  if (start.apart) {
    const middle = start.window;
    return showWindow(map, zoomed(middle, start.apart / Math.max(apart(map), 1), (middle.top + middle.bottom) / 2, (middle.left + middle.right) / 2));
  }
  if (!start.moved || isWhole(start.window)) return hover(map, event);
  map.view.tooltip.hide();
  return showWindow(map, panned(start.window, -Math.round(down / plot.cell.height), -Math.round(across / plot.cell.width)));
}

function endDrag(map, event) {
  map.touches.delete(event.pointerId);
  const {drag: start, view} = map;
  map.drag = null;
  if (!start || start.moved || event.type === "pointercancel") return;
  const cell = map.plot && view.now.head ? cellAt(map, event) : null;
  if (cell) view.pin({query: view.now.rows[cell.row], key: view.now.columns[cell.column]}, {pair: true});
}

/** The wheel zooms a large matrix; a small one lets the page scroll, and so does one that can go no farther. */
function wheel(map, event) {
  if (map.zoom.hidden || !map.plot) return;
  const cell = cellAt(map, event);
  const wanted = event.ctrlKey || document.activeElement === map.stage || map.stage.getRootNode().activeElement === map.stage || !isWhole(map.window);
  if (cell === null || !wanted || (event.deltaY > 0 && isWhole(map.window))) return;
  event.preventDefault();
  showWindow(map, zoomed(map.window, Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY / 300))), cell.row, cell.column));
}

function zoomAt(map, factor) {
  const {view, window} = map;
  const active = view.active();
  const [row, column] = [view.now.rows.indexOf(active.query ?? -1), view.now.columns.indexOf(active.key ?? -1)];
  showWindow(map, zoomed(window, factor, row < 0 ? (window.top + window.bottom) / 2 : row, column < 0 ? (window.left + window.right) / 2 : column));
}

function showWindow(map, window) {
  map.window = window;
  drawBase(map);
  drawOver(map);
}

function key(map, event) {
  const {view} = map;
  const {rows, columns} = view.now;
  const steps = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
  const active = view.active();
  if (event.key in steps) {
    const [down, across] = steps[event.key];
    if (event.shiftKey) showWindow(map, panned(map.window, down * 3, across * 3));
    else {
      const row = Math.min(Math.max(rows.indexOf(active.query ?? -1) + down, 0), rows.length - 1);
      const column = Math.min(Math.max(columns.indexOf(active.key ?? -1) + across, 0), columns.length - 1);
      view.point({query: rows[row], key: columns[column]});
      view.announceCell(rows[row], columns[column]);
      showWindow(map, showing(map.window, row, column));
    }
  } else if (event.key === "Enter" || event.key === " ") {
    if (active.query !== null && active.key !== null) view.pin(active, {pair: true});
  } else if (event.key === "Escape") view.pin({query: null, key: null}, {pair: false});
  else if (event.key === "+" || event.key === "=") zoomAt(map, CLOSER);
  else if (event.key === "-") zoomAt(map, 1 / CLOSER);
  else if (event.key === "0") showWindow(map, null);
  else return;
  event.preventDefault();
}
