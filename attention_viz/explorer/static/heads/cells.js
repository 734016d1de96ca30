// A cell for each head, layers down and heads across: as a grid for screen readers, walked along by arrow keys.

import {element} from "../parts/element.js";
import {headingPlaces, mostHeads, placeOf, tracksOf} from "./layout.js";

/** @import {Layout} from "./layout.js" */

/** @typedef {{layer: number, head: number}} HeadPlace */

/** @type {Record<string, string>} */
const TURNED = {
  ...{ArrowLeft: "ArrowUp", ArrowUp: "ArrowLeft", ArrowRight: "ArrowDown", ArrowDown: "ArrowRight"},
  ...{Home: "PageUp", PageUp: "Home", End: "PageDown", PageDown: "End"},
};

/**
 * The rows of the grid, its heading first; `layers` tell how many heads each has, what the model calls it, and its number
 * where some are left out.
 * @param {{heads: number, label: string, number?: number}[]} layers
 * @param {(layer: number, head: number) => HTMLElement} buildCell
 */
export function gridRows(layers, buildCell) {
  const heading = element(
    "div",
    {role: "row", class: "av-heading"},
    element("span", {role: "columnheader"}, element("span", {class: "av-live"}, "Layer")),
    ...Array.from({length: mostHeads(layers)}, (_, head) =>
      element("span", {role: "columnheader", "aria-label": `Head ${head}`}, String(head)),
    ),
  );
  const rows = layers.map(({heads, label, number}, layer) => {
    const called = String(number ?? layer);
    const title = label === called ? null : `Layer ${label} of the model`;
    const name = element(
      "span",
      {role: "rowheader", "aria-label": `Layer ${called}`, title, "data-called": called},
      called,
    );
    return element("div", {role: "row"}, name, ...Array.from({length: heads}, (_, head) => buildCell(layer, head)));
  });
  return [heading, ...rows];
}

/**
 * Put the cells that `gridRows` has made where a layout has them, with their numbers beside them.
 * @param {HTMLElement} table
 * @param {Layout} layout
 */
export function placeCells(table, layout) {
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

/**
 * The numbers of heads, for each block; screen readers hear them once.
 * @param {Element} heading
 * @param {Layout} layout
 */
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

/**
 * @param {HTMLElement} node
 * @param {number} number
 * @param {number} every
 */
function write(node, number, every) {
  node.textContent = number % every ? "" : (node.dataset["called"] ?? String(number));
}

/**
 * @param {HTMLElement} node
 * @param {{row: number, column: number}} place
 */
function stand(node, {row, column}) {
  node.style.gridArea = `${row} / ${column}`;
}

/**
 * Which way layers and heads go, in signs.
 * @param {Layout} layout
 * @param {boolean} together  whether a layer's heads are one
 */
export function axesOf({turned}, together = false) {
  if (together) return turned ? "layer \u2192" : "layer \u2193 heads together";
  return turned ? "head \u2193 layer \u2192" : "layer \u2193 head \u2192";
}

/**
 * Where a key leads from a head, never outside; null for a key that leads nowhere. Where the grid is turned, heads stand
 * one below the other.
 * @param {{heads: number}[]} layers
 * @param {HeadPlace} from
 * @param {string} key
 * @param {boolean} turned
 * @returns {HeadPlace | null}
 */
export function headByKey(layers, {layer, head}, key, turned = false) {
  /** @type {Record<string, [layer: number, head: number]>} */
  const steps = {
    ArrowLeft: [layer, head - 1],
    ArrowRight: [layer, head + 1],
    ArrowUp: [layer - 1, head],
    ArrowDown: [layer + 1, head],
    Home: [layer, 0],
    End: [layer, layers[layer].heads - 1],
    PageUp: [0, head],
    PageDown: [layers.length - 1, head],
  };
  const meant = turned ? (TURNED[key] ?? key) : key;
  const step = Object.hasOwn(steps, meant) ? steps[meant] : undefined;
  if (!step) return null;
  const [toLayer, toHead] = step;
  if (toLayer < 0 || toLayer >= layers.length || toHead < 0) return {layer, head};
  return {layer: toLayer, head: Math.min(toHead, layers[toLayer].heads - 1)};
}
