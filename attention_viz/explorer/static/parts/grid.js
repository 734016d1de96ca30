// All heads of a stream as small pictures, layers down and heads across.

import {gridRows, headByKey, headSize, mostHeads} from "./cells.js";
import {element, fitCanvas} from "./element.js";
import {coloured, sample} from "../data/raster.js";
import {colourTable} from "../data/scale.js";

/** The grid of heads: a click or the arrow keys choose one. */
export function createGrid(view) {
  const table = element("div", {class: "av-cells", role: "grid", "aria-label": "Heads: layers down, heads across"});
  const together = view.recording.header.reading?.together;
  const axes = together ? "layer \u2193 heads together" : "layer \u2193 head \u2192";
  const title = element("h2", {}, `All ${together ? "layers" : "heads"} `, element("span", {class: "av-axes"}, axes));
  const node = element("section", {class: "av-grid", "data-testid": "explorer-grid"}, title, table);
  const grid = {view, node, table, cells: new Map(), size: 0};
  table.onclick = (event) => {
    const cell = event.target.closest("[data-head]");
    if (cell) view.choose({layer: Number(cell.dataset.layer), head: Number(cell.dataset.head)});
  };
  table.onkeydown = (event) => walkHeads(grid, event);
  return {
    node,
    draw(changed) {
      if (changed.has("stream")) buildCells(grid);
      if (["stream", "size"].some((name) => changed.has(name))) resize(grid);
      const repaint = ["stream", "size", "loaded", "scale", "hideSpecial", "theme"].some((name) => changed.has(name));
      if (repaint)
        paintAll(
          grid,
          ["stream", "size", "hideSpecial"].some((name) => changed.has(name)),
        );
      if (["stream", "layer", "head"].some((name) => changed.has(name))) mark(grid);
    },
  };
}

function buildCells(grid) {
  grid.cells.clear();
  grid.table.replaceChildren(...gridRows(grid.view.now.stream.layers, (layer, head) => buildCell(grid, layer, head)));
}

function buildCell(grid, layer, head) {
  const canvas = element("canvas", {"aria-hidden": "true"});
  const node = element(
    "div",
    {
      class: "av-cell",
      role: "gridcell",
      tabindex: "-1",
      "aria-selected": "false",
      "aria-label": `Layer ${layer} head ${head}`,
      title: grid.view.recording.headName(layer, head),
      "data-layer": layer,
      "data-head": head,
    },
    canvas,
  );
  grid.cells.set(`${layer} ${head}`, {node, canvas, layer, head, pixels: null});
  return node;
}

function resize(grid) {
  const {layers} = grid.view.now.stream;
  grid.size = headSize(layers, grid.node.clientWidth, grid.view.room());
  grid.table.style.setProperty("--av-size", `${grid.size}px`);
  grid.table.style.setProperty("--av-heads", mostHeads(layers));
}

/** Paint every head that has been read; sampling is kept until size or tokens change. */
function paintAll(grid, resample) {
  const {stream, scale} = grid.view.store.state;
  const {ramp} = grid.view.colours;
  const {values} = grid.view.recording;
  const shared = scale === "maximum" ? null : colourTable(values, scale, 1, ramp);
  for (const cell of grid.cells.values()) {
    const head = grid.view.recording.head({stream, layer: cell.layer, head: cell.head});
    if (resample) cell.pixels = null;
    if (head) paint(grid, cell, head, shared);
  }
}

function paint(grid, cell, head, shared) {
  const {rows, columns} = grid.view.now;
  const context = fitCanvas(cell.canvas, grid.size, grid.size);
  const {width, height} = cell.canvas;
  if (cell.pixels === null) {
    cell.pixels = sample(head, rows, columns, width, height);
    cell.maximum = head.maximum(rows, columns);
  }
  const table = shared ?? colourTable(head.values, "maximum", cell.maximum, grid.view.colours.ramp);
  context.putImageData(coloured(cell.pixels, width, height, table, grid.view.hatching(4, 0.5)), 0, 0);
}

function mark(grid) {
  const {layer, head} = grid.view.store.state;
  for (const cell of grid.cells.values()) {
    const chosen = cell.layer === layer && cell.head === head;
    cell.node.setAttribute("aria-selected", String(chosen));
    cell.node.setAttribute("tabindex", chosen ? "0" : "-1");
  }
}

function walkHeads(grid, event) {
  const {layer, head} = grid.view.store.state;
  const chosen = headByKey(grid.view.now.stream.layers, {layer, head}, event.key);
  if (!chosen) return;
  event.preventDefault();
  if (chosen.layer === layer && chosen.head === head) return;
  focusHead(grid, chosen);
  grid.view.choose(chosen);
}

function focusHead(grid, {layer, head}) {
  grid.cells.get(`${layer} ${head}`).node.focus({preventScroll: false});
}
