// The map of all heads, by what each wrote or by what is missing when it is silenced or another text’s.

import {depthOf, headInFull, missingOf, signed, wordsFor} from "./reading.js";
import {HeadGrid} from "../heads/cells.js";
import {element} from "../parts/element.js";

/** @import {HeadCell, HeadPlace} from "../heads/cells.js"
 * @import {WhyHeader} from "./reading.js" */

/** @typedef {[number, number]} Place */

/** What is shown of a number.
 * @typedef {object} WhyView
 * @property {Place} chosen
 * @property {"wrote" | "silenced" | "put"} by  what heads are coloured and ordered by
 * @property {boolean} runs  whether the page runs the model without each head
 * @property {Map<string, number>} after  what the number is without a head, or with that of another text
 * @property {Map<string, [string[], string[]]>} writes  the words that a head writes for, and those against */

/** A cell a head; layers go across, heads down.
 * @param {WhyHeader} header @param {WhyView} view @param {(head: Place) => void} choose */
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
  const hear = (/** @type {HeadPlace} */ {layer, head}) => choose([layer, head]);
  const grid = new HeadGrid(`Heads by ${words.each}: layers across, heads down`, {press: hear, reach: hear});
  const {table} = grid;
  const fill = (/** @type {HeadCell} */ cell) => paintSpot(header, cell, map[cell.layer][cell.head], full);
  grid.build(
    header.heads.map((heads, layer) => ({heads, label: String(layer)})),
    fill,
    rowsAcross,
  );
  grid.mark({layer: chosen[0], head: chosen[1]});
  const down = Math.max(...header.heads);
  table.className = "av-written-map";
  table.style.gridTemplate = `repeat(${down}, 1fr) / repeat(${layers}, 1fr)`;
  table.style.setProperty("--av-down", String(down));
  table.append(...laterOf(header));
  const sums = bars(
    header.map.map((row) => row.reduce((sum, one) => sum + one, 0)),
    "Heads, sum per layer",
  );
  // What is missing without one head overlaps with what is missing without another.
  const above = isWritten ? sums : element("p", {class: "av-note av-apart"}, words.apart);
  return element(
    "section",
    {class: "av-where-written", "aria-label": "All heads"},
    element("h2", {}, words.title),
    element("p", {class: "av-note"}, words.means),
    above,
    element("div", {class: "av-numbered-map"}, numbersAlong(down, "down"), table),
    ...kindsOf(header),
    ...(isWritten && header.mlps.some((one) => one) ? [bars(header.mlps, "MLPs")] : []),
    numbersAlong(layers, "across"),
    scaleOf(header, full),
  );
}

/** The layers that come after a score, whose heads write nothing to it. @param {WhyHeader} header */
function laterOf({pair, heads}) {
  if (!pair || pair[0] >= heads.length) return [];
  const place = `grid-area: 1 / ${pair[0] + 1} / -1 / ${heads.length + 1}`;
  return [element("span", {class: "av-come-after", style: place, "aria-hidden": "true"}, "come after")];
}

/** The numbers of layers or heads beside the map; of many, each fifth.
 * @param {number} count @param {"across" | "down"} way */
function numbersAlong(count, way) {
  const apart = count > 12 ? 5 : 1;
  const words = (/** @type {number} */ at) => (at === 0 && way === "across" ? "layer 0" : String(at));
  const numbers = Array.from({length: count}, (_, at) => element("span", {}, at % apart ? "" : words(at)));
  return element("div", {class: `av-axis av-${way}`, "aria-hidden": "true"}, ...numbers);
}

/** A line under each layer without a softmax, and what kinds they are. @param {WhyHeader} header */
function kindsOf({kinds}) {
  const named = [...new Set(kinds)].filter((kind) => kind);
  if (!kinds || !named.length) return [];
  const line = kinds.map((kind) => element("span", kind ? {class: "av-mixes", title: kind} : {}));
  const words = named.length ? `no softmax: ${named.join(", ")}` : "";
  return [
    element("div", {class: "av-kinds", "aria-hidden": "true"}, ...line),
    element("p", {class: "av-note"}, element("i", {class: "av-mixes"}), words),
  ];
}

/** What the colours mean. @param {WhyHeader} header @param {number} full */
function scaleOf({more, less}, full) {
  return element(
    "p",
    {class: "av-scale-words"},
    less ? element("b", {class: "av-less"}, less) : "subtracts",
    element("i", {class: "av-diverging", "aria-hidden": "true"}),
    less ? element("b", {class: "av-more"}, more) : "adds",
    ` · full colour from ${full.toFixed(2)}, small ones lifted`,
  );
}

/** A row a head, as layers go across.
 * @param {{heads: number}[]} layers @param {(layer: number, head: number) => HTMLElement} build */
function rowsAcross(layers, build) {
  const columns = layers.map(({heads}, layer) => Array.from({length: heads}, (_, head) => build(layer, head)));
  return Array.from({length: Math.max(...layers.map(({heads}) => heads))}, (_, head) =>
    element("div", {role: "row"}, ...columns.map((column) => column[head])),
  );
}

/** @param {WhyHeader} header @param {HeadCell} cell @param {number | null} number @param {number} full */
function paintSpot(header, cell, number, full) {
  const {layer, head, node} = cell;
  const isLater = header.pair != null && layer >= header.pair[0];
  const told = isLater ? "comes after the score" : number === null ? "not run yet" : signed(number);
  const words = `${headInFull(header, [layer, head])}: ${told}`;
  const share = Math.round(depthOf(number ?? 0, full) * 100);
  node.className = number === null && !isLater ? "av-spot av-untried" : "av-spot";
  node.setAttribute("aria-label", words.replace("l", "L"));
  node.title = words;
  node.style.gridArea = `${head + 1} / ${layer + 1}`;
  node.style.background = `color-mix(in oklab, var(--av-${(number ?? 0) < 0 ? "less" : "more"}) ${share}%, var(--av-background))`;
  return cell;
}

/** A bar a layer, up for more and down for less. @param {number[]} numbers @param {string} label */
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
