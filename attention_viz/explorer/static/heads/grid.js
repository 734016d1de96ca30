// All heads of a stream as small pictures, layers down and heads across.

import {layerNumber, layerPlace} from "./numbers.js";
import {HeadGrid, axesOf} from "./cells.js";
import {element, fitCanvas} from "../parts/element.js";
import {seatOf} from "./layout.js";
import {coloured} from "../data/raster.js";
import {colourTable} from "../data/scale.js";
import {hasAny} from "../data/store.js";

/** @import {Part, State, View} from "../parts/view.js"
 * @import {Picture} from "../data/recording.js"
 * @import {HeadCell} from "./cells.js"
 * @import {Layout} from "./layout.js" */

/**
 * How heads are drawn in small where they aren't drawn as matrices, and what of the state that follows.
 * @typedef {{follows: (keyof State)[], paint: (canvas: HTMLCanvasElement, head: Picture, layout: Layout) => void}} Painter
 */

/** @typedef {Pick<View, "store" | "recording" | "now" | "colours" | "choose" | "preview" | "root" | "room" | "hatching">} GridView */

/**
 * The cell of a head, its layer by its `row`, too; its weights under each pixel are kept until the size or the tokens change.
 * @typedef {HeadCell & {canvas: HTMLCanvasElement, row: number, pixels: Uint16Array | null, maximum: number}} ExploreCell
 */

// The line above the cells, and how high they may be in a row of their own, in pixels.
const [TITLE, ALONE] = [24, 610];

/** The grid of heads: a click or the arrow keys choose one.
 * @param {GridView} view @param {Painter | null} painter @returns {Part} */
export function createGrid(view, painter = null) {
  const choose = (/** @type {ExploreCell} */ {row, head}) => view.choose({layer: row, head});
  /** @type {HeadGrid<ExploreCell>} */
  const grid = new HeadGrid("Heads: layers down, heads across", {
    press: choose,
    reach: choose,
    point: (cell) => view.preview(cell && {layer: cell.row, head: cell.head, query: null, key: null}),
  });
  const together = view.recording.header.reading?.together;
  const axes = element("span", {class: "av-axes"});
  const title = element("h2", {}, `All ${together ? "layers" : "heads"} `, axes);
  const node = element("section", {class: "av-grid", "data-testid": "explorer-grid"}, title, grid.table);
  return {
    node,
    draw(changed) {
      if (changed.has("stream")) buildCells(view, grid);
      if (hasAny(changed, "stream", "size")) axes.textContent = axesOf(resize(view, grid, node), together);
      if (hasAny(changed, "stream", "size", "loaded", "scale", "hideSpecial", "theme", ...(painter?.follows ?? [])))
        paintAll(view, grid, painter, hasAny(changed, "stream", "size", "hideSpecial"));
      const {layer, head} = view.store.state;
      if (hasAny(changed, "stream", "layer", "head"))
        grid.mark({layer: layerNumber(view.now.stream.layers, layer), head});
    },
  };
}

/** @param {GridView} view @param {HeadGrid<ExploreCell>} grid */
function buildCells({now, recording}, grid) {
  const {layers} = now.stream;
  grid.build(layers, (cell) => {
    const canvas = element("canvas", {"aria-hidden": "true"});
    const row = layerPlace(layers, cell.layer);
    cell.node.setAttribute("aria-label", `Layer ${cell.layer} head ${cell.head}`);
    cell.node.title = recording.headName(now.stream, row, cell.head);
    cell.node.append(canvas);
    return {...cell, canvas, row, pixels: null, maximum: 0};
  });
}

/** @param {GridView} view @param {HeadGrid<ExploreCell>} grid @param {HTMLElement} node */
function resize({root, now, room}, grid, node) {
  const beside = room() - TITLE;
  const seat = seatOf(now.stream.layers, root.clientWidth, beside);
  root.dataset["grid"] = seat;
  // In a row of its own it takes what it needs.
  const height = seat === "below" ? Math.max(beside, ALONE) : beside;
  return grid.lay({width: node.clientWidth, height});
}

/**
 * Paint every head that has been read.
 * @param {GridView} view @param {HeadGrid<ExploreCell>} grid @param {Painter | null} painter @param {boolean} resample
 */
function paintAll(view, grid, painter, resample) {
  const {recording, colours} = view;
  const {stream, scale} = view.store.state;
  const shared = scale === "maximum" ? null : colourTable(recording.codes, scale, 1, colours.ramp);
  for (const cell of grid.cells.values()) {
    const picture = recording.picture({stream, layer: cell.row, head: cell.head});
    if (resample) cell.pixels = null;
    if (picture && painter) painter.paint(cell.canvas, picture, grid.layout);
    else if (picture) paint(view, grid.layout, cell, picture, shared);
  }
}

/** @param {GridView} view @param {Layout} layout @param {ExploreCell} cell @param {Picture} picture
 * @param {Uint32Array | null} shared */
function paint(view, layout, cell, picture, shared) {
  const {rows, columns} = view.now;
  const context = fitCanvas(cell.canvas, layout.width, layout.height);
  const {width, height} = cell.canvas;
  if (cell.pixels === null) {
    cell.pixels = picture.sample(rows, columns, width, height);
    cell.maximum = picture.maximum(rows, columns);
  }
  const table = shared ?? colourTable(picture.values, "maximum", cell.maximum, view.colours.ramp);
  context.putImageData(coloured(cell.pixels, width, height, table, view.hatching(4, 0.5)), 0, 0);
}
