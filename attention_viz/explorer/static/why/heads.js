// The largest heads as a list: where each looks, what it wrote, and what is missing when it is silenced.

import {largestOf, looksAt, missingOf, nameOfHead, wordsFor} from "./reading.js";
import {amount, smallBar} from "./sum.js";
import {element} from "../parts/element.js";

/** @import {Place, WhyView} from "./map.js"
 * @import {WhyHeader} from "./reading.js" */

// So many cells a row has at most.
const CELLS = 40;

/** @param {WhyHeader} header @param {WhyView} view @param {(head: Place) => void} choose */
export function drawList(header, {chosen, by, runs, after}, choose) {
  const words = wordsFor(by);
  const missed = largestOf(missingOf(header, after), header.listed.length);
  const listed = by !== "wrote" && missed.length ? missed : header.listed;
  const numbers = listed.flatMap(([layer, head]) => {
    const now = after.get(`${layer} ${head}`);
    return [header.map[layer][head], ...(now === undefined ? [] : [header.total - now])].map((number) => ({number}));
  });
  const rows = listed.map((place) => listRow(header, place, String(place) === String(chosen), after, numbers, choose));
  const waits = runs && by !== "put" && listed.some((place) => !after.has(place.join(" ")));
  const solid = waits ? "running the model without each head …" : `${words.missing}, measured`;
  const means = runs ? `hatched: its own contribution · solid: ${solid}` : "each head’s own contribution";
  const legend = element("p", {class: "av-note", "aria-live": "polite"}, means);
  return element(
    "section",
    {class: "av-largest", "aria-label": "Largest heads", "aria-busy": String(waits)},
    element("h2", {}, words.list),
    legend,
    ...rows,
  );
}

/** @param {WhyHeader} header @param {Place} place @param {boolean} isChosen @param {Map<string, number>} numbers
 * @param {{number: number}[]} beside @param {(head: Place) => void} choose */
function listRow(header, [layer, head], isChosen, numbers, beside, choose) {
  const name = `${layer} ${head}`;
  const size = header.sizes?.[name] ?? 1;
  const [sources, wrote, after] = [header.sources[name] ?? [], header.map[layer][head], numbers.get(name)];
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
    element("b", {class: "av-id"}, nameOfHead(header, [layer, head]).replace("layer ", "")),
    element(
      "span",
      {class: "av-looks"},
      element("span", {class: "av-pattern", "aria-hidden": "true"}, ...pattern(header, sources, size)),
      element("span", {class: "av-words-looked"}, looksAt(header, sources, size)),
    ),
    element(
      "span",
      {class: "av-two"},
      smallBar(wrote, beside, "av-direct"),
      amount(wrote),
      missing === null ? element("span", {class: "av-lane av-waits"}, element("s")) : smallBar(missing, beside),
      missing === null ? element("b", {class: "av-amount"}) : amount(missing),
    ),
  );
}

/** @param {WhyHeader} header @param {[number, number, number][]} sources @param {number} size */
function pattern({keys}, sources, size) {
  // Of a long text several words share a cell, as deep as the heaviest of them.
  const count = Math.min(keys.length, CELLS);
  const deepest = Array.from({length: count}, () => 0);
  for (const [at, weight] of sources) {
    const cell = Math.floor((at * count) / keys.length);
    if (Math.abs(weight) / size > Math.abs(deepest[cell])) deepest[cell] = weight / size;
  }
  return deepest.map((weight) =>
    element("i", {class: weight < 0 ? "av-away" : "", style: `--av-weight: ${Math.round(Math.abs(weight) * 100)}%`}),
  );
}
