// The map of all heads, by what each wrote or by what is missing when it is silenced or another text’s.

import {depthOf, missingOf, signed, wordsFor} from "./reading.js";
import {element} from "../parts/element.js";

/** @import {WhyHeader} from "./reading.js" */

/** @typedef {[number, number]} Place */

/**
 * What is shown of a number.
 * @typedef {object} WhyView
 * @property {Place} chosen
 * @property {"wrote" | "silenced" | "put"} by  what heads are coloured and ordered by
 * @property {Map<string, number>} after  what the number is without a head, or with that of another text
 * @property {Map<string, [string[], string[]]>} writes  the words that a head writes for, and those against
 */

/**
 * A cell a head; layers go across, heads down.
 * @param {WhyHeader} header
 * @param {WhyView} view
 * @param {(head: Place) => void} choose
 */
export function drawMap(header, {chosen, by, after}, choose) {
  const [isWritten, words] = [by === "wrote", wordsFor(by)];
  const map = isWritten ? header.map : missingOf(header, after);
  const numbers = map
    .flat()
    .flatMap((number) => (number === null ? [] : [Math.abs(number)]))
    .sort((one, other) => one - other);
  // The few largest are as deep as can be, so that the others can be told apart.
  const full = numbers[Math.max(0, numbers.length - 1 - Math.floor(numbers.length / 60))] || 1;
  const layers = header.heads.length;
  const [across, down] = [layers, Math.max(...header.heads)];
  const rows = Array.from({length: down}, (_, head) => {
    const cells = map.flatMap((row, layer) =>
      head < row.length ? [mapCell([layer, head], row[head], full, String([layer, head]) === String(chosen))] : [],
    );
    return element("div", {role: "row"}, ...cells);
  });
  const grid = element(
    "div",
    {
      class: "av-written-map",
      role: "grid",
      "aria-label": `Heads by what ${words.each}: layers across, heads down`,
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
  // What is missing without one head overlaps with what is missing without another.
  const above = isWritten ? sums : element("p", {class: "av-note av-apart"}, words.apart);
  return element(
    "section",
    {class: "av-where-written", "aria-label": "All heads"},
    element("h2", {}, words.title),
    above,
    grid,
    ...(isWritten ? [bars(header.mlps, "MLPs")] : []),
    axis,
    scaleOf(header, full),
  );
}

/**
 * What the colours mean.
 * @param {WhyHeader} header
 * @param {number} full
 */
function scaleOf({more, less}, full) {
  return element(
    "p",
    {class: "av-scale-words"},
    less ? element("b", {class: "av-less"}, less) : "takes away",
    element("i", {class: "av-diverging", "aria-hidden": "true"}),
    less ? element("b", {class: "av-more"}, more) : "adds",
    ` · full colour from ${full.toFixed(2)} on, a scale of roots`,
  );
}

/**
 * @param {Place} place
 * @param {number | null} number
 * @param {number} full
 * @param {boolean} isChosen
 */
function mapCell([layer, head], number, full, isChosen) {
  const depth = depthOf(number ?? 0, full);
  const words = number === null ? "not run yet" : signed(number);
  const shade = `color-mix(in oklab, var(--av-${(number ?? 0) < 0 ? "for-less" : "for-more"}) ${Math.round(depth * 100)}%, var(--av-background))`;
  return element("div", {
    role: "gridcell",
    class: number === null ? "av-spot av-untried" : "av-spot",
    tabindex: isChosen ? "0" : "-1",
    "aria-selected": String(isChosen),
    "aria-label": `Layer ${layer}, head ${head}: ${words}`,
    title: `layer ${layer}, head ${head}: ${words}`,
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
  const layers = [...grid.querySelectorAll(`[data-head="${place[1] + step[1]}"]`)]
    .map((cell) => Number(cell.getAttribute("data-layer")))
    .filter((layer) => (step[0] ? (layer - place[0]) * step[0] > 0 : layer === place[0]));
  // Layers without heads are passed over.
  const [next] = layers.sort((one, other) => Math.abs(one - place[0]) - Math.abs(other - place[0]));
  if (next !== undefined) choose([next, place[1] + step[1]]);
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
