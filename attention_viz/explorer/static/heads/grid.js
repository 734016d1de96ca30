// All heads of a stream as small pictures, layers down and heads across.

import {layerNumber} from "./numbers.js";
import {axesOf, gridRows, headByKey, placeCells} from "./cells.js";
import {element, fitCanvas, within} from "../parts/element.js";
import {layHeads, seatOf} from "./layout.js";
import {coloured} from "../data/raster.js";
import {colourTable} from "../data/scale.js";
import {hasAny} from "../data/store.js";

/**
 * @import {Part, State, View} from "../parts/view.js"
 * @import {Picture} from "../data/recording.js"
 * @import {HeadPlace} from "./cells.js"
 * @import {Layout} from "./layout.js"
 */

/**
 * How heads are drawn in small where they aren't drawn as matrices, and what of the state that follows.
 * @typedef {{follows: (keyof State)[], paint: (canvas: HTMLCanvasElement, head: Picture, layout: Layout) => void}} Painter
 */

/** @typedef {Pick<View, "store" | "recording" | "now" | "colours" | "choose" | "preview" | "root" | "room" | "hatching">} GridView */

/**
 * The cell of a head; its weights under each pixel are kept until the size or the tokens change.
 * @typedef {object} HeadCell
 * @property {HTMLElement} node
 * @property {HTMLCanvasElement} canvas
 * @property {number} layer
 * @property {number} head
 * @property {Uint16Array | null} pixels
 * @property {number} maximum
 */

/**
 * @typedef {object} Grid
 * @property {GridView} view
 * @property {HTMLElement} node
 * @property {HTMLElement} table
 * @property {Map<string, HeadCell>} cells
 * @property {HTMLElement} axes  which way layers and heads go
 * @property {Layout} layout
 * @property {Painter | null} painter
 */

// The line above the cells, and how high they may be in a row of their own, in pixels.
const [TITLE, ALONE] = [24, 610];

/**
 * The grid of heads: a click or the arrow keys choose one.
 * @param {GridView} view
 * @param {Painter | null} painter
 * @returns {Part}
 */
export function createGrid(view, painter = null) {
  const table = element("div", {class: "av-cells", role: "grid", "aria-label": "Heads: layers down, heads across"});
  const together = view.recording.header.reading?.together;
  const axes = element("span", {class: "av-axes"});
  const title = element("h2", {}, `All ${together ? "layers" : "heads"} `, axes);
  const node = element("section", {class: "av-grid", "data-testid": "explorer-grid"}, title, table);
  /** @type {Grid} */
  const grid = {
    view,
    node,
    table,
    axes,
    painter,
    cells: new Map(),
    layout: layHeads([{heads: 1}], {width: 0, height: 0}),
  };
  table.onclick = (event) => {
    const cell = within(event, "[data-head]");
    if (cell) view.choose({layer: Number(cell.dataset["layer"]), head: Number(cell.dataset["head"])});
  };
  let last = "";
  table.onpointerover = (event) => {
    // What the page scrolls under a pointer that rests isn't pointed at.
    const place = `${event.clientX} ${event.clientY}`;
    const cell = event.pointerType === "touch" || place === last ? null : within(event, "[data-head]");
    last = place;
    if (cell) view.preview(placeIn(cell));
  };
  table.onpointerleave = () => view.preview(null);
  table.onkeydown = (event) => walkHeads(grid, event);
  return {
    node,
    draw(changed) {
      if (changed.has("stream")) buildCells(grid);
      if (hasAny(changed, "stream", "size")) resize(grid);
      if (hasAny(changed, "stream", "size", "loaded", "scale", "hideSpecial", "theme", ...(painter?.follows ?? [])))
        paintAll(grid, hasAny(changed, "stream", "size", "hideSpecial"));
      if (hasAny(changed, "stream", "layer", "head")) mark(grid);
    },
  };
}

/** @param {HTMLElement} cell */
function placeIn({dataset}) {
  return {layer: Number(dataset["layer"]), head: Number(dataset["head"]), query: null, key: null};
}

/** @param {Grid} grid */
function buildCells(grid) {
  grid.cells.clear();
  grid.table.replaceChildren(...gridRows(grid.view.now.stream.layers, (layer, head) => buildCell(grid, layer, head)));
}

/**
 * @param {Grid} grid
 * @param {number} layer
 * @param {number} head
 */
function buildCell(grid, layer, head) {
  const canvas = element("canvas", {"aria-hidden": "true"});
  const {now, recording} = grid.view;
  const node = element(
    "div",
    {
      class: "av-cell",
      role: "gridcell",
      tabindex: "-1",
      "aria-selected": "false",
      "aria-label": `Layer ${layerNumber(now.stream.layers, layer)} head ${head}`,
      title: recording.headName(now.stream, layer, head),
      "data-layer": layer,
      "data-head": head,
    },
    canvas,
  );
  grid.cells.set(`${layer} ${head}`, {node, canvas, layer, head, pixels: null, maximum: 0});
  return node;
}

/** @param {Grid} grid */
function resize(grid) {
  const {root, now, room, recording} = grid.view;
  const {layers} = now.stream;
  const beside = room() - TITLE;
  const seat = seatOf(layers, root.clientWidth, beside);
  root.dataset["grid"] = seat;
  // In a row of its own it takes what it needs.
  const height = seat === "below" ? Math.max(beside, ALONE) : beside;
  grid.layout = layHeads(layers, {width: grid.node.clientWidth, height});
  placeCells(grid.table, grid.layout);
  grid.axes.textContent = axesOf(grid.layout, recording.header.reading?.together);
}

/**
 * Paint every head that has been read.
 * @param {Grid} grid
 * @param {boolean} resample
 */
function paintAll(grid, resample) {
  const {stream, scale} = grid.view.store.state;
  const {ramp} = grid.view.colours;
  const {codes} = grid.view.recording;
  const shared = scale === "maximum" ? null : colourTable(codes, scale, 1, ramp);
  for (const cell of grid.cells.values()) {
    const picture = grid.view.recording.picture({stream, layer: cell.layer, head: cell.head});
    if (resample) cell.pixels = null;
    if (picture) paint(grid, cell, picture, shared);
  }
}

/**
 * @param {Grid} grid
 * @param {HeadCell} cell
 * @param {Picture} picture
 * @param {Uint32Array | null} shared
 */
function paint(grid, cell, picture, shared) {
  if (grid.painter) {
    grid.painter.paint(cell.canvas, picture, grid.layout);
    return;
  }
  const {rows, columns} = grid.view.now;
  const context = fitCanvas(cell.canvas, grid.layout.width, grid.layout.height);
  const {width, height} = cell.canvas;
  if (cell.pixels === null) {
    cell.pixels = picture.sample(rows, columns, width, height);
    cell.maximum = picture.maximum(rows, columns);
  }
  const table = shared ?? colourTable(picture.values, "maximum", cell.maximum, grid.view.colours.ramp);
  context.putImageData(coloured(cell.pixels, width, height, table, grid.view.hatching(4, 0.5)), 0, 0);
}

/** @param {Grid} grid */
function mark(grid) {
  const {layer, head} = grid.view.store.state;
  for (const cell of grid.cells.values()) {
    const chosen = cell.layer === layer && cell.head === head;
    cell.node.setAttribute("aria-selected", String(chosen));
    cell.node.setAttribute("tabindex", chosen ? "0" : "-1");
  }
}

/**
 * @param {Grid} grid
 * @param {KeyboardEvent} event
 */
function walkHeads(grid, event) {
  const {layer, head} = grid.view.store.state;
  const chosen = headByKey(grid.view.now.stream.layers, {layer, head}, event.key, grid.layout.turned);
  if (!chosen) return;
  event.preventDefault();
  if (chosen.layer === layer && chosen.head === head) return;
  focusHead(grid, chosen);
  grid.view.choose(chosen);
}

/**
 * @param {Grid} grid
 * @param {HeadPlace} place
 */
function focusHead(grid, {layer, head}) {
  grid.cells.get(`${layer} ${head}`)?.node.focus({preventScroll: false});
}
