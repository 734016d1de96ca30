// A cell for each head, layers down and heads across: as a grid for screen readers, walked along by arrow keys.

import {element} from "./element.js";

const GAP = 3;
const GUTTER = 26;
const HEADING = 46;
const [SMALLEST, LARGEST] = [12, 64];

/** The rows of the grid, its heading first; `layers` tell how many heads each has and what the model calls it. */
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

export function mostHeads(layers) {
  return Math.max(...layers.map(({heads}) => heads));
}

/** How wide and high a cell is where that much room is, in pixels. */
export function headSize(layers, width, height) {
  const across = (width - GUTTER) / mostHeads(layers) - GAP;
  const down = (height - HEADING) / layers.length - GAP;
  return Math.floor(Math.min(Math.max(Math.min(across, down), SMALLEST), LARGEST));
}

/** Where a key leads from a head, or null: to no place outside, or not a key that leads anywhere. */
export function headByKey(layers, {layer, head}, key) {
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
  if (!(key in steps)) return null;
  const [toLayer, toHead] = steps[key];
  if (toLayer < 0 || toLayer >= layers.length || toHead < 0) return {layer, head};
  return {layer: toLayer, head: Math.min(toHead, layers[toLayer].heads - 1)};
}
