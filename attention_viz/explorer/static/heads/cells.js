// A cell for each head, layers down and heads across: as a grid for screen readers, walked along by arrow keys.

import {element, within} from "../parts/element.js";
import {headingPlaces, layHeads, mostHeads, placeOf, tracksOf} from "./layout.js";
import {layerNumber} from "./numbers.js";

/** @import {Layout, Place} from "./layout.js" */

/** A head by its layer's number, or its name where numbers come twice.
 * @typedef {{layer: number, head: number, name?: string}} HeadPlace */

/** `name` tells layers with one number apart; `called` is what stands beside the layer in place of its number.
 * @typedef {{heads: number, label: string, number?: number, name?: string, called?: string}} HeadLayer */

/** The cell of a head, its layer by its number and by its `row`; `place` is where it stands among all heads.
 * @typedef {HeadPlace & {row: number, place: number, node: HTMLElement}} HeadCell */

/**
 * What follows what a reader does: `press` a click or Enter, `reach` an arrow key that leads to a head, `point` a pointer
 * that comes to a head or leaves them all.
 * @template {HeadCell} C
 * @typedef {{press: (cell: C, event: Event) => void, reach?: (cell: C) => void, point?: (cell: C | null) => void}} HeadHearing
 */

/** @type {Record<string, string>} */
const TURNED = {
  ...{ArrowLeft: "ArrowUp", ArrowUp: "ArrowLeft", ArrowRight: "ArrowDown", ArrowDown: "ArrowRight"},
  ...{Home: "PageUp", PageUp: "Home", End: "PageDown", PageDown: "End"},
};

/** All heads: their cells, of which one is chosen and one is reached by the Tab key. What they show is painted by
 * others.
 * @template {HeadCell} C */
export class HeadGrid {
  /** @param {string} label @param {HeadHearing<C>} hearing */
  constructor(label, hearing) {
    this.hearing = hearing;
    this.table = element("div", {class: "av-cells", role: "grid", "aria-label": label});
    /** @type {HeadLayer[]} */
    this.layers = [];
    /** @type {Map<string, C>} */
    this.cells = new Map();
    this.layout = layHeads([{heads: 1}], {width: 0, height: 0});
    this.chosen = this.reached = "";
    this.listen();
  }

  listen() {
    const {table, hearing} = this;
    let resting = "";
    const hasMoved = (/** @type {PointerEvent} */ {screenX, screenY}) =>
      resting !== (resting = `${screenX} ${screenY}`);
    table.onclick = (event) => {
      const cell = this.cellOf(event);
      if (!cell) return;
      cell.node.focus();
      hearing.press(cell, event);
    };
    table.addEventListener("focusin", (event) => {
      const cell = this.cellOf(event);
      if (cell) this.reached = cellName(cell);
      this.mark();
    });
    table.onkeydown = (event) => this.walk(event);
    table.onpointermove = (event) => void hasMoved(event);
    // What the page moves under a pointer that rests isn't pointed at.
    table.onpointerover = (event) => {
      const cell = hasMoved(event) && event.pointerType !== "touch" ? this.cellOf(event) : null;
      if (cell) hearing.point?.(cell);
    };
    table.onpointerleave = (event) => {
      hasMoved(event); // it may come back to the very place that it left
      hearing.point?.(null);
    };
  }

  /** A cell for each head, as `fill` makes it. @param {HeadLayer[]} layers @param {(cell: HeadCell) => C} fill */
  build(layers, fill, rowsOf = gridRows) {
    this.layers = layers;
    this.cells.clear();
    const build = (/** @type {number} */ row, /** @type {number} */ head) => {
      const layer = layerNumber(layers, row);
      const {name} = layers[row];
      const named = {"data-layer": name ?? layer, "data-head": head, tabindex: -1, "aria-selected": "false"};
      const node = element("div", {class: "av-cell", role: "gridcell", ...named});
      const place = {layer, head, ...(name === undefined ? {} : {name})};
      this.cells.set(cellName(place), fill({...place, row, place: this.cells.size, node}));
      return node;
    };
    this.table.replaceChildren(...rowsOf(layers, build));
    this.mark();
  }

  /** Fit the cells to their place. @param {Place} place */
  lay(place) {
    this.layout = layHeads(this.layers, place);
    placeCells(this.table, this.layout);
    return this.layout;
  }

  /** Mark the chosen head; the Tab key comes to it, or to the one that was reached since.
   * @param {HeadPlace | null} chosen */
  mark(chosen = null) {
    const name = chosen ? cellName(chosen) : this.chosen;
    const moves = name !== this.chosen && !this.table.matches(":focus-within");
    if (moves || !this.cells.has(this.reached)) this.reached = name;
    this.chosen = name;
    for (const [at, {node}] of this.cells) {
      node.setAttribute("aria-selected", String(at === name));
      node.tabIndex = at === this.reached ? 0 : -1;
    }
  }

  /** The cell that an event happened in. @param {Event} event */
  cellOf(event) {
    const at = within(event, "[data-head]")?.dataset;
    return at ? this.cells.get(`${at["layer"]} ${at["head"]}`) : undefined;
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const [cell, {layers, hearing}] = [this.cellOf(event), this];
    if (!cell) return;
    const from = {layer: cell.row, head: cell.head};
    const to = headByKey(layers, from, event.key, this.layout.turned);
    if (event.key === "Enter" || event.key === " ") hearing.press(cell, event);
    else if (!to) return;
    else if (to.layer !== from.layer || to.head !== from.head) {
      const there = /** @type {C} */ (
        this.cells.get(cellName({layer: layerNumber(layers, to.layer), head: to.head, ...namedAs(layers[to.layer])}))
      );
      there.node.focus();
      hearing.reach?.(there);
    }
    event.preventDefault();
  }
}

/** What a head is called in the grid. @param {HeadPlace} place */
export function cellName({layer, head, name}) {
  return `${name ?? layer} ${head}`;
}

/** @param {HeadLayer} layer */
function namedAs({name}) {
  return name === undefined ? {} : {name};
}

/** The rows of the grid, its heading first; `layers` tell how many heads each has, what the model calls it, and its
 * number where some are left out.
 * @param {HeadLayer[]} layers @param {(layer: number, head: number) => HTMLElement} buildCell */
function gridRows(layers, buildCell) {
  const heading = element(
    "div",
    {role: "row", class: "av-heading"},
    element("span", {role: "columnheader"}, element("span", {class: "av-live"}, "Layer")),
    ...Array.from({length: mostHeads(layers)}, (_, head) =>
      element("span", {role: "columnheader", "aria-label": `Head ${head}`}, String(head)),
    ),
  );
  const rows = layers.map(({heads, label, number, called: own}, layer) => {
    const called = own ?? String(number ?? layer);
    const title = label === String(number ?? layer) ? null : `Layer ${label} of the model`;
    const name = element(
      "span",
      {role: "rowheader", "aria-label": `Layer ${called}`, title, "data-called": called},
      called,
    );
    return element("div", {role: "row"}, name, ...Array.from({length: heads}, (_, head) => buildCell(layer, head)));
  });
  return [heading, ...rows];
}

/** Put the cells that `gridRows` has made where a layout has them, with their numbers beside them.
 * @param {HTMLElement} table @param {Layout} layout */
function placeCells(table, layout) {
  const {columns, rows} = tracksOf(layout);
  Object.assign(table.style, {gridTemplateColumns: columns, gridTemplateRows: rows});
  table.style.setProperty("--av-size", `${layout.width}px`);
  table.style.setProperty("--av-height", `${layout.height}px`);
  for (const again of table.querySelectorAll(".av-again")) again.remove();
  const [heading, ...layers] = [...table.children];
  placeHeading(heading, layout);
  layers.forEach((row, layer) => {
    const [name, ...cells] = /** @type {HTMLElement[]} */ ([...row.children]);
    const {row: line, column} = placeOf(layout, layer, -1);
    write(name, layer, layout.turned ? layout.every.across : layout.every.down);
    stand(name, {row: line, column});
    name.classList.toggle("av-above", layout.turned);
    cells.forEach((cell, head) => stand(cell, placeOf(layout, layer, head)));
  });
}

/** The numbers of heads, for each block; screen readers hear them once.
 * @param {Element} heading @param {Layout} layout */
function placeHeading(heading, layout) {
  const [corner, ...names] = /** @type {HTMLElement[]} */ ([...heading.children]);
  stand(corner, {row: 1, column: 1});
  const every = layout.turned ? layout.every.down : layout.every.across;
  names.forEach((name, head) => {
    write(name, head, every);
    name.classList.toggle("av-above", !layout.turned);
    headingPlaces(layout, head).forEach((place, block) => {
      const node = block ? /** @type {HTMLElement} */ (name.cloneNode(true)) : name;
      if (block) {
        node.classList.add("av-again");
        node.removeAttribute("role");
        node.setAttribute("aria-hidden", "true");
        heading.append(node);
      }
      stand(node, place);
    });
  });
}

/** @param {HTMLElement} node @param {number} number @param {number} every */
function write(node, number, every) {
  node.textContent = number % every ? "" : (node.dataset["called"] ?? String(number));
}

/** @param {HTMLElement} node @param {{row: number, column: number}} place */
function stand(node, {row, column}) {
  node.style.gridArea = `${row} / ${column}`;
}

/** Which way layers and heads go, in signs.
 * @param {Layout} layout
 * @param {boolean} together  whether a layer's heads are one */
export function axesOf({turned}, together = false) {
  if (together) return turned ? "layer \u2192" : "layer \u2193 heads together";
  return turned ? "head \u2193 layer \u2192" : "layer \u2193 head \u2192";
}

/** Where a key leads from a head, never outside; null for a key that leads nowhere. Where the grid is turned, heads
 * stand one below the other.
 * @param {{heads: number}[]} layers @param {HeadPlace} from @param {string} key @param {boolean} turned
 * @returns {HeadPlace | null} */
export function headByKey(layers, {layer, head}, key, turned = false) {
  // Layers without heads are passed over.
  /** @type {(at: number, way: number) => number} */
  const beyond = (at, way) => (layers[at + way]?.heads === 0 ? beyond(at + way, way) : at + way);
  /** @type {Record<string, [layer: number, head: number]>} */
  const steps = {
    ArrowLeft: [layer, head - 1],
    ArrowRight: [layer, head + 1],
    ArrowUp: [beyond(layer, -1), head],
    ArrowDown: [beyond(layer, 1), head],
    Home: [layer, 0],
    End: [layer, layers[layer].heads - 1],
    PageUp: [beyond(-1, 1), head],
    PageDown: [beyond(layers.length, -1), head],
  };
  const meant = turned ? (TURNED[key] ?? key) : key;
  const step = Object.hasOwn(steps, meant) ? steps[meant] : undefined;
  if (!step) return null;
  const [toLayer, toHead] = step;
  if (toLayer < 0 || toLayer >= layers.length || toHead < 0) return {layer, head};
  return {layer: toLayer, head: Math.min(toHead, layers[toLayer].heads - 1)};
}
