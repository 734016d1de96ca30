// A cell for each head, layers across and heads down: as a grid for screen readers, walked along by arrow keys.

import {element, isPointing, within} from "../parts/element.js";
import {headingPlaces, layHeads, mostHeads, placeOf, tracksOf} from "./layout.js";
import {layerNumber} from "./numbers.js";

/** @import {Layout, Place} from "./layout.js" */

// How wide a letter of a layer's name is, in pixels.
const LETTER = 6.2;

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
    table.onpointerover = (event) => {
      const cell = isPointing(event) ? this.cellOf(event) : null;
      if (cell) hearing.point?.(cell);
    };
    table.onpointerleave = () => hearing.point?.(null);
  }

  /** A cell for each head, as `fill` makes it. @param {HeadLayer[]} layers @param {(cell: HeadCell) => C} fill */
  build(layers, fill, rowsOf = gridRows) {
    this.layers = layers;
    this.cells.clear();
    const before = layers.map((_, row) => layers.slice(0, row).reduce((sum, {heads}) => sum + heads, 0));
    const build = (/** @type {number} */ row, /** @type {number} */ head) => {
      const layer = layerNumber(layers, row);
      const {name} = layers[row];
      const named = {"data-layer": name ?? layer, "data-head": head, tabindex: -1, "aria-selected": "false"};
      const node = element("div", {class: "av-cell", role: "gridcell", ...named});
      const place = {layer, head, ...(name === undefined ? {} : {name})};
      this.cells.set(cellName(place), fill({...place, row, place: before[row] + head, node}));
      return node;
    };
    this.table.replaceChildren(...rowsOf(layers, build));
    this.mark();
  }

  /** Fit the cells to their place. @param {Place} place */
  lay(place) {
    this.layout = layHeads(this.layers, place);
    placeCells(this.table, this.layers, this.layout);
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
    const to = headByKey(layers, from, event.key);
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
  const names = layers.map(({label, number, called: own}, layer) => {
    const short = String(number ?? layer);
    const called = own ?? short;
    const title = own ?? (label === short ? null : `Layer ${label} of the model`);
    const attributes = {"aria-label": `Layer ${called}`, title, "data-called": called, "data-short": short};
    return element("span", {role: "columnheader", ...attributes}, short);
  });
  const corner = element("span", {role: "columnheader"}, element("span", {class: "av-live"}, "Head"));
  const rows = Array.from({length: mostHeads(layers)}, (_, head) =>
    element(
      "div",
      {role: "row"},
      element("span", {role: "rowheader", "aria-label": `Head ${head}`}, String(head)),
      ...layers.flatMap(({heads}, layer) => (head < heads ? [buildCell(layer, head)] : [])),
    ),
  );
  return [element("div", {role: "row", class: "av-heading"}, corner, ...names), ...rows];
}

/** Put the cells that `gridRows` has made where a layout has them, with their numbers beside them.
 * @param {HTMLElement} table @param {HeadLayer[]} layers @param {Layout} layout */
function placeCells(table, layers, layout) {
  const {columns, rows} = tracksOf(layout);
  Object.assign(table.style, {gridTemplateColumns: columns, gridTemplateRows: rows});
  table.style.setProperty("--av-size", `${layout.width}px`);
  table.style.setProperty("--av-height", `${layout.height}px`);
  for (const again of table.querySelectorAll(".av-again")) again.remove();
  const [heading, ...lines] = [...table.children];
  const [corner, ...names] = /** @type {HTMLElement[]} */ ([...heading.children]);
  stand(corner, {row: 1, column: 1});
  names.forEach((name, layer) => {
    const {called = "", short = ""} = name.dataset;
    const fits = called.length * LETTER <= layout.width + layout.gap;
    name.textContent = fits ? called : layer % layout.every.across ? "" : short;
    name.classList.toggle("av-mixes", called !== short && !called.endsWith("softmax"));
    stand(name, placeOf(layout, layer, -1));
  });
  lines.forEach((line, head) => {
    const [name, ...cells] = /** @type {HTMLElement[]} */ ([...line.children]);
    name.textContent = head % layout.every.down ? "" : String(head);
    placeHeadNumber(line, name, headingPlaces(layout, head));
    const there = layers.flatMap(({heads}, layer) => (head < heads ? [layer] : []));
    cells.forEach((cell, at) => stand(cell, placeOf(layout, there[at], head)));
  });
}

/** The number of a head, for each band; screen readers hear it once.
 * @param {Element} line @param {HTMLElement} name @param {{row: number, column: number}[]} places */
function placeHeadNumber(line, name, places) {
  places.forEach((place, band) => {
    const node = band ? /** @type {HTMLElement} */ (name.cloneNode(true)) : name;
    if (band) {
      node.classList.add("av-again");
      node.removeAttribute("role");
      node.setAttribute("aria-hidden", "true");
      line.append(node);
    }
    stand(node, place);
  });
}

/** @param {HTMLElement} node @param {{row: number, column: number}} place */
function stand(node, {row, column}) {
  node.style.gridArea = `${row} / ${column}`;
}

/** Which way layers and heads go, in signs. @param {boolean} together  whether a layer's heads are one */
export function axesOf(together = false) {
  return together ? "layer \u2192" : "head \u2193 layer \u2192";
}

/** Where a key leads from a head, never outside; null for a key that leads nowhere.
 * @param {{heads: number}[]} layers @param {HeadPlace} from @param {string} key
 * @returns {HeadPlace | null} */
export function headByKey(layers, {layer, head}, key) {
  // Layers without heads are passed over.
  /** @type {(at: number, way: number) => number} */
  const beyond = (at, way) => (layers[at + way]?.heads === 0 ? beyond(at + way, way) : at + way);
  /** @type {Record<string, () => [layer: number, head: number]>} */
  const steps = {
    ArrowLeft: () => [beyond(layer, -1), head],
    ArrowRight: () => [beyond(layer, 1), head],
    ArrowUp: () => [layer, head - 1],
    ArrowDown: () => [layer, head + 1],
    Home: () => [beyond(-1, 1), head],
    End: () => [beyond(layers.length, -1), head],
    PageUp: () => [layer, 0],
    PageDown: () => [layer, layers[layer].heads - 1],
  };
  if (!Object.hasOwn(steps, key)) return null;
  const [toLayer, toHead] = steps[key]();
  if (toLayer < 0 || toLayer >= layers.length || toHead < 0) return {layer, head};
  return {layer: toLayer, head: Math.min(toHead, layers[toLayer].heads - 1)};
}
