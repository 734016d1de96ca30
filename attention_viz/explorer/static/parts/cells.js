// A cell for each head, layers down and heads across: as a grid for screen readers, walked along by arrow keys.

import {element} from "./element.js";

/** @typedef {{layer: number, head: number}} HeadPlace */

const GAP = 3;
const GUTTER = 26;
const HEADING = 46;
const [SMALLEST, LARGEST] = [12, 64];

/**
 * The rows of the grid, its heading first; `layers` tell how many heads each has and what the model calls it.
 * @param {{heads: number, label: string}[]} layers
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
  const rows = layers.map(({heads, label}, layer) => {
    const title = label === String(layer) ? null : `Layer ${label} of the model`;
    const name = element("span", {role: "rowheader", "aria-label": `Layer ${layer}`, title}, String(layer));
    return element("div", {role: "row"}, name, ...Array.from({length: heads}, (_, head) => buildCell(layer, head)));
  });
  return [heading, ...rows];
}

/** @param {{heads: number}[]} layers */
export function mostHeads(layers) {
  return Math.max(...layers.map(({heads}) => heads));
}

/**
 * How wide and high a cell is where that much room is, in pixels.
 * @param {{heads: number}[]} layers
 * @param {number} width
 * @param {number} height
 */
export function headSize(layers, width, height) {
  const across = (width - GUTTER) / mostHeads(layers) - GAP;
  const down = (height - HEADING) / layers.length - GAP;
  return Math.floor(Math.min(Math.max(Math.min(across, down), SMALLEST), LARGEST));
}

/**
 * Where a key leads from a head, never outside; null for a key that leads nowhere.
 * @param {{heads: number}[]} layers
 * @param {HeadPlace} from
 * @param {string} key
 * @returns {HeadPlace | null}
 */
export function headByKey(layers, {layer, head}, key) {
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
  const step = Object.hasOwn(steps, key) ? steps[key] : undefined;
  if (!step) return null;
  const [toLayer, toHead] = step;
  if (toLayer < 0 || toLayer >= layers.length || toHead < 0) return {layer, head};
  return {layer: toLayer, head: Math.min(toHead, layers[toLayer].heads - 1)};
}
