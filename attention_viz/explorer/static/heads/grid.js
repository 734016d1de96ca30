// All heads of a stream as small pictures.

import {layerNumber} from "./numbers.js";
import {HeadGrid, axesOf} from "./cells.js";
import {element, fitCanvas} from "../parts/element.js";
import {rampOf} from "../parts/style.js";
import {readAs} from "../parts/view.js";
import {MixedHead} from "../data/mixing.js";
import {seatOf, tableSize} from "./layout.js";
import {coloured} from "../data/raster.js";
import {colourTable} from "../data/scale.js";
import {hasAny} from "../data/store.js";

/** @import {Part, State, View} from "../parts/view.js"
 * @import {Picture, Recording, Stream} from "../data/recording.js"
 * @import {HeadCell, HeadLayer} from "./cells.js"
 * @import {Layout, Place} from "./layout.js" */

/**
 * How heads are drawn in small where they aren't drawn as matrices, and what of the state that follows.
 * @typedef {{follows?: (keyof State)[], shape?: Partial<Place>,
 *   paint?: (canvas: HTMLCanvasElement, head: Picture, layout: Layout) => void}} Painter
 */

/** A layer of a stream, by its place there. @typedef {{stream: string, layer: number}} At
 * @typedef {HeadLayer & {number: number, at: At}} GridRow */

/** @typedef {Pick<View, "store" | "recording" | "now" | "colours" | "choose" | "preview" | "root" | "room" | "hatching">} GridView */

/**
 * The cell of a head, with its stream and the place of its layer there; its weights under each pixel are kept until the size or the tokens change.
 * @typedef {HeadCell & {at: At, canvas: HTMLCanvasElement, pixels: Uint16Array | null, maximum: number}} ExploreCell
 */

// In pixels: the line above the cells; what is kept below them for the first of the heads that link two words; how high
// cells may be in a row of their own.
const [TITLE, RANKED, ALONE] = [24, 44, 610];
// How wide the column of the grid is at least, in pixels.
const LEAST_COLUMN = 340;

/** The grid of heads: a click or the arrow keys choose one.
 * @param {GridView} view @param {Painter | null} painter @returns {Part} */
export function createGrid(view, painter = null) {
  const choose = (/** @type {ExploreCell} */ {at, head}) => view.choose({...at, head});
  /** @type {HeadGrid<ExploreCell>} */
  const grid = new HeadGrid("Heads: layers across, heads down", {
    press: choose,
    reach: choose,
    point: (cell) => view.preview(cell && {...cell.at, head: cell.head, query: null, key: null}),
  });
  const together = view.recording.header.reading?.together;
  /** @type {GridRow[]} */
  let rows = [];
  const axes = element("span", {class: "av-axes"}, axesOf(Boolean(together)));
  const title = element("h2", {}, `All ${together ? "layers" : "heads"} `, axes);
  const node = element("section", {class: "av-grid", "data-testid": "explorer-grid"}, title, grid.table);
  return {
    node,
    draw(changed) {
      if (changed.has("stream")) rows = buildCells(view, grid, rows);
      if (hasAny(changed, "stream", "size")) resize(view, grid, node, rows, painter);
      if (
        hasAny(
          changed,
          "stream",
          "size",
          "loaded",
          "scale",
          "arrived",
          "hideSpecial",
          "theme",
          ...(painter?.follows ?? []),
        )
      )
        paintAll(view, grid, painter, hasAny(changed, "stream", "size", "arrived", "hideSpecial"));
      const {stream, layer, head} = view.store.state;
      if (hasAny(changed, "stream", "layer", "head"))
        grid.mark({
          ...rows.find(({at}) => at.stream === stream && at.layer === layer),
          layer: layerNumber(view.now.stream.layers, layer),
          head: Math.min(head, view.now.stream.layers[layer].heads - 1), // of channels there is one picture
        });
    },
  };
}

/** A cell for each head of the rows that go with the stream, unless they are there; tells the rows.
 * @param {GridView} view @param {HeadGrid<ExploreCell>} grid @param {GridRow[]} before */
function buildCells({now, recording}, grid, before) {
  const rows = rowsWith(recording, now.stream);
  if (rows.length === before.length && rows.every((row, place) => row.name === before[place].name)) return before;
  grid.build(rows, (cell) => {
    const canvas = element("canvas", {"aria-hidden": "true"});
    const {at, called} = rows[cell.row];
    cell.node.setAttribute("aria-label", `Layer ${called ?? cell.layer} head ${cell.head}`);
    cell.node.title = recording.headName(recording.stream(at.stream), at.layer, cell.head);
    cell.node.append(canvas);
    return {...cell, at, canvas, pixels: null, maximum: 0};
  });
  return rows;
}

/** The layers of a stream, and with it of all that mix the same tokens: with and without a softmax, in the model's order.
 * @param {Pick<Recording, "streams">} recording @param {Stream} stream @returns {GridRow[]} */
export function rowsWith({streams}, stream) {
  const mixed = stream.own && streams.some(({signed, own, queries}) => signed && own && queries === stream.queries);
  const together = mixed ? streams.filter(({own, queries}) => own && queries === stream.queries) : [stream];
  const rows = together.flatMap(({name, layers}) =>
    layers.map(({heads, label, kind}, layer) => {
      const number = layerNumber(layers, layer);
      const named = mixed ? {name: `${name} ${number}`, called: `${number} \u00b7 ${kind ?? "softmax"}`} : {};
      return {heads, label, number, ...named, at: {stream: name, layer}};
    }),
  );
  return rows.sort((a, b) => a.number - b.number);
}

/** @param {GridView} view @param {HeadGrid<ExploreCell>} grid @param {HTMLElement} node
 * @param {GridRow[]} rows @param {Painter | null} painter */
function resize({root, room}, grid, node, rows, painter) {
  const beside = room() - TITLE - RANKED;
  const {seat, width} = seatOf(rows, root.clientWidth, beside);
  root.dataset["grid"] = seat;
  // In a row of its own it takes what it needs.
  const height = seat === "below" ? Math.max(beside, ALONE) : beside;
  const layout = grid.lay({width: painter ? node.clientWidth : width, height, ...painter?.shape});
  // The matrix has what the cells leave, and the list of heads below them has room.
  root.style.setProperty("--av-grid", `${Math.max(LEAST_COLUMN, tableSize(layout).width)}px`);
}

/**
 * Paint every head that has been read.
 * @param {GridView} view @param {HeadGrid<ExploreCell>} grid @param {Painter | null} painter @param {boolean} resample
 */
function paintAll(view, grid, painter, resample) {
  const {recording, colours} = view;
  const {scale} = view.store.state;
  const shared = scale === "maximum" ? null : colourTable(recording.codes, scale, 1, colours.ramp);
  for (const cell of grid.cells.values()) {
    const picture = readAs(recording.picture({...cell.at, head: cell.head}), view.store.state);
    if (resample) cell.pixels = null;
    if (picture && painter?.paint) painter.paint(cell.canvas, picture, grid.layout);
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
  const own = picture instanceof MixedHead ? picture.scale : null;
  const table =
    (own ? null : shared) ??
    colourTable(picture.values, own ?? "maximum", cell.maximum, rampOf(view.colours, own ?? "maximum"));
  context.putImageData(coloured(cell.pixels, width, height, table, view.hatching(4, 0.5)), 0, 0);
}
