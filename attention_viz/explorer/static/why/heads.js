// The map of all heads by what each wrote, and the largest as a list.

import {depthOf, looksAt, signed} from "./reading.js";
import {amount, smallBar} from "./sum.js";
import {element} from "../parts/element.js";

/** @import {WhyHeader} from "./reading.js" */

/** @typedef {[number, number]} Place */

// So many cells a row has at most.
const CELLS = 40;

/**
 * A cell a head, coloured by what it wrote; layers go across, or down where heads are more.
 * @param {WhyHeader} header
 * @param {Place} chosen
 * @param {(head: Place) => void} choose
 */
export function drawMap(header, chosen, choose) {
  const numbers = header.map
    .flat()
    .map(Math.abs)
    .sort((one, other) => one - other);
  // The few largest are as deep as can be, so that the others can be told apart.
  const full = numbers[Math.max(0, numbers.length - 1 - Math.floor(numbers.length / 60))] || 1;
  const layers = header.heads.length;
  const [across, down] = [layers, Math.max(...header.heads)];
  const rows = Array.from({length: down}, (_, head) => {
    const cells = header.map.flatMap((row, layer) =>
      head < row.length ? [mapCell([layer, head], row[head], full, String([layer, head]) === String(chosen))] : [],
    );
    return element("div", {role: "row"}, ...cells);
  });
  const grid = element(
    "div",
    {
      class: "av-written-map",
      role: "grid",
      "aria-label": "Heads by what each wrote: layers across, heads down",
      style: `grid-template: repeat(${down}, 1fr) / repeat(${across}, 1fr); --av-down: ${down}`,
      onclick: (/** @type {Event} */ event) => {
        const place = placeOf(event);
        if (place) choose(place);
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => walk(event, choose),
    },
    ...rows,
  );
  const axis = element(
    "div",
    {class: "av-axis", "aria-hidden": "true"},
    element("span", {}, "layer 0"),
    element("span", {}, `layer ${layers - 1}`),
  );
  const sums = bars(
    header.map.map((row) => row.reduce((sum, one) => sum + one, 0)),
    "Heads, each layer’s sum",
  );
  const mlps = bars(header.mlps, "MLPs");
  const scale = element(
    "p",
    {class: "av-scale-words"},
    header.less ? element("b", {class: "av-less"}, header.less) : "takes away",
    element("i", {class: "av-diverging", "aria-hidden": "true"}),
    header.less ? element("b", {class: "av-more"}, header.more) : "adds",
    ` · full colour from ${full.toFixed(2)} on, a scale of roots`,
  );
  return element(
    "section",
    {class: "av-where-written", "aria-label": "Who wrote it, where"},
    element("h2", {}, "Who wrote it, where"),
    sums,
    grid,
    mlps,
    axis,
    scale,
  );
}

/**
 * @param {Place} place
 * @param {number} number
 * @param {number} full
 * @param {boolean} isChosen
 */
function mapCell([layer, head], number, full, isChosen) {
  const depth = depthOf(number, full);
  const shade = `color-mix(in oklab, var(--av-${number < 0 ? "for-less" : "for-more"}) ${Math.round(depth * 100)}%, var(--av-background))`;
  return element("div", {
    role: "gridcell",
    class: "av-spot",
    tabindex: isChosen ? "0" : "-1",
    "aria-selected": String(isChosen),
    "aria-label": `Layer ${layer}, head ${head}: ${signed(number)}`,
    title: `layer ${layer}, head ${head}: ${signed(number)}`,
    "data-layer": layer,
    "data-head": head,
    style: `grid-area: ${head + 1} / ${layer + 1}; background: ${shade}`,
  });
}

/**
 * @param {Event} event
 * @returns {Place | null}
 */
function placeOf(event) {
  const cell = event.target instanceof HTMLElement ? event.target : null;
  const [layer, head] = [cell?.dataset["layer"], cell?.dataset["head"]];
  return layer === undefined || head === undefined ? null : [Number(layer), Number(head)];
}

/**
 * The arrow keys choose the head beside.
 * @param {KeyboardEvent} event
 * @param {(head: Place) => void} choose
 */
function walk(event, choose) {
  const steps = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]};
  const step = steps[/** @type {keyof typeof steps} */ (event.key)];
  const place = placeOf(event);
  if (!step || !place) return;
  event.preventDefault();
  const grid = /** @type {HTMLElement} */ (event.currentTarget);
  const next = grid.querySelector(`[data-layer="${place[0] + step[0]}"][data-head="${place[1] + step[1]}"]`);
  if (next) choose([place[0] + step[0], place[1] + step[1]]);
}

/**
 * A bar a layer, up for more and down for less.
 * @param {number[]} numbers
 * @param {string} label
 */
function bars(numbers, label) {
  const full = Math.max(...numbers.map(Math.abs), 1e-9);
  const best = numbers.reduce((most, one, at) => (Math.abs(one) > Math.abs(numbers[most]) ? at : most), 0);
  return element(
    "div",
    {class: "av-layer-bars"},
    element("p", {class: "av-note"}, `${label}: most in layer ${best}, ${signed(numbers[best])}`),
    element(
      "div",
      {class: "av-layer-sums", "aria-hidden": "true"},
      ...numbers.map((number) =>
        element(
          "span",
          {},
          element("i", {
            class: number < 0 ? "av-less" : "av-more",
            style: `height: ${(Math.abs(number) / full) * 50}%`,
          }),
        ),
      ),
    ),
  );
}

/**
 * The heads that wrote most: where each looks, what it wrote, and what is missing when it is silenced.
 * @param {WhyHeader} header
 * @param {Place} chosen
 * @param {Map<string, number>} silenced
 * @param {(head: Place) => void} choose
 */
export function drawList(header, chosen, silenced, choose) {
  const numbers = header.listed.flatMap(([layer, head]) => {
    const after = silenced.get(`${layer} ${head}`);
    return [header.map[layer][head], ...(after === undefined ? [] : [header.total - after])].map((number) => ({
      number,
    }));
  });
  const rows = header.listed.map((place) =>
    listRow(header, place, String(place) === String(chosen), silenced, numbers, choose),
  );
  const legend = element("p", {class: "av-note"}, "hatched: what it wrote · solid: missing when silenced");
  return element(
    "section",
    {class: "av-largest", "aria-label": "The largest heads"},
    element("h2", {}, "The largest heads"),
    legend,
    ...rows,
  );
}

/**
 * @param {WhyHeader} header
 * @param {Place} place
 * @param {boolean} isChosen
 * @param {Map<string, number>} silenced
 * @param {{number: number}[]} beside
 * @param {(head: Place) => void} choose
 */
function listRow(header, [layer, head], isChosen, silenced, beside, choose) {
  const name = `${layer} ${head}`;
  const [sources, wrote, after] = [header.sources[name] ?? [], header.map[layer][head], silenced.get(name)];
  const missing = after === undefined ? null : header.total - after;
  return element(
    "button",
    {
      class: "av-largest-row",
      type: "button",
      "aria-pressed": String(isChosen),
      "data-head": name,
      onclick: () => choose([layer, head]),
    },
    element("b", {class: "av-id"}, `${layer}·${head}`),
    element(
      "span",
      {class: "av-looks"},
      element("span", {class: "av-pattern", "aria-hidden": "true"}, ...pattern(header, sources)),
      element("span", {class: "av-words-looked"}, looksAt(sources, header.keys)),
    ),
    element(
      "span",
      {class: "av-two"},
      smallBar(wrote, beside, "av-direct"),
      amount(wrote),
      missing === null ? element("span", {class: "av-lane"}) : smallBar(missing, beside),
      missing === null ? element("b", {class: "av-amount av-quiet"}, "…") : amount(missing),
    ),
  );
}

/**
 * @param {WhyHeader} header
 * @param {[number, number, number][]} sources
 */
function pattern({keys}, sources) {
  // Of a long text several words share a cell, as deep as the heaviest of them.
  const count = Math.min(keys.length, CELLS);
  const deepest = Array.from({length: count}, () => 0);
  for (const [at, weight] of sources) {
    const cell = Math.floor((at * count) / keys.length);
    deepest[cell] = Math.max(deepest[cell], weight);
  }
  return deepest.map((weight) => element("i", {style: `--av-weight: ${Math.round(weight * 100)}%`}));
}
