// Bars of any numbers: a label that is never cut, the bar, and the number.

import {exactText} from "./levels.js";
import {numbersAt} from "../data/payload.js";
import {element, within} from "../parts/element.js";
import {createTooltip} from "../parts/tooltip.js";

/** @import {Place} from "../data/payload.js"
 * @import {Drawing} from "./chart.js" */

/** What stands before the bars' numbers, as `pack_bars` in chart_payload.py writes it.
 * @typedef {object} BarsHeader
 * @property {"bars"} kind
 * @property {string[]} labels
 * @property {string[]} written
 * @property {number} largest  the number of a bar that fills its track
 * @property {boolean} signed  whether 0 lies in the middle
 * @property {"weight" | "query" | "key" | "value" | "plain"} colour
 * @property {string} title
 * @property {number | null} chosen
 * @property {string} words
 * @property {boolean} clicks
 * @property {Place} values */

const FILLS = {
  weight: "av-accent-fill",
  query: "av-query-fill",
  key: "av-keys-fill",
  value: "av-value-fill",
  plain: "av-plain-fill",
};

/** @param {HTMLElement} root @param {(at: number) => void} press @returns {Drawing} */
export function createBarRows(root, press) {
  const [title, rows] = [element("h2", {}), element("ol", {class: "av-chart-rows"})];
  root.replaceChildren(title, rows);
  const tooltip = createTooltip(root);
  /** @type {string[]} */
  let exact = [];
  rows.addEventListener("pointermove", (event) => {
    const row = within(event, "li");
    if (row) tooltip.show(event.clientX, event.clientY, element("strong", {}, exact[[...rows.children].indexOf(row)]));
  });
  rows.addEventListener("pointerleave", () => tooltip.hide());
  return {
    load(payload) {
      /** @type {BarsHeader} */
      const header = payload.header;
      const values = [...numbersAt(payload, header.values, Float64Array)];
      exact = values.map(exactText);
      title.textContent = header.title;
      title.hidden = !header.title;
      rows.setAttribute("aria-label", header.words || header.title);
      const at = [...rows.children].findIndex((row) => row.matches(":focus-within"));
      rows.replaceChildren(...header.labels.map((_, place) => rowOf(header, values[place], place, choose)));
      rows.children[at]?.querySelector("button")?.focus();
    },
    draw: () => {},
  };

  /** @param {number} at */
  function choose(at) {
    for (const [place, row] of [...rows.children].entries())
      row.querySelector("button")?.setAttribute("aria-pressed", String(place === at));
    press(at);
  }
}

/** @param {BarsHeader} header @param {number} value @param {number} at @param {(at: number) => void} choose */
function rowOf({labels, written, largest, signed, colour, chosen, clicks}, value, at, choose) {
  const kind = signed ? (value < 0 ? "av-minus-fill" : "av-plus-fill") : FILLS[colour];
  const fill = element("i", {class: `av-fill ${kind}`});
  const part = largest > 0 ? Math.min(1, Math.abs(value) / largest) : 0;
  fill.style.width = `${(signed ? 50 : 100) * (Number.isNaN(part) ? 0 : part)}%`;
  if (signed) fill.style.marginLeft = value < 0 ? `calc(50% - ${fill.style.width})` : "50%";
  const parts = [
    element("bdi", {class: "av-word"}, labels[at]),
    element("span", {class: signed ? "av-track av-from-middle" : "av-track", "aria-hidden": "true"}, fill),
    element("span", {class: "av-number"}, written[at]),
  ];
  if (!clicks) return element("li", {}, ...parts);
  const pressed = String(chosen === at);
  return element(
    "li",
    {},
    element("button", {type: "button", "aria-pressed": pressed, onclick: () => choose(at)}, ...parts),
  );
}
