// The number as a sum: a bar after the other, each beginning where the one before ended.

import {plainNumber, signed, tiny, wordAt} from "./reading.js";
import {element} from "../parts/element.js";

/** @import {SumGroup, WhyHeader} from "./reading.js" */

/** @param {WhyHeader} header
 * @param {Set<string>} open  which parts are opened
 * @param {(name: string) => void} toggle @param {(head: [number, number]) => void} choose */
export function drawSum(header, open, toggle, choose) {
  const parts = header.groups;
  const ends = parts.map((_, upTo) => parts.slice(0, upTo + 1).reduce((sum, part) => sum + part.sum, 0));
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const place = (/** @type {number} */ number) => ((number - low) / (high - low || 1)) * 100;
  const rows = parts.map((part, at) => {
    const [from, to] = [at ? ends[at - 1] : 0, ends[at]];
    return groupRow(
      header,
      part,
      [place(Math.min(from, to)), place(Math.max(from, to))],
      place(0),
      open,
      toggle,
      choose,
    );
  });
  const title = element("h2", {}, `${plainNumber(header.total)} as a sum `, quiet("click a line to open it"));
  const whole = [place(Math.min(0, header.total)), place(Math.max(0, header.total))];
  return element(
    "section",
    {class: "av-sum", "aria-label": "The number as a sum"},
    title,
    ...rows,
    element("p", {class: "av-rest"}, "Remainder ", element("b", {}, tiny(header.remainder))),
    element(
      "p",
      {class: "av-grand"},
      header.less ? `${header.more} over ${header.less}` : header.more,
      element("b", {}, plainNumber(header.total)),
    ),
    bar(whole, place(0), "av-all"),
    ...wordRows(header, open, toggle),
    element(
      "p",
      {class: "av-note"},
      "Each part’s own contribution, with attention weights and layer norms as they were (direct effects).",
      header.pair ? " A score is the number before the softmax." : "",
    ),
  );
}

/** @param {WhyHeader} header @param {SumGroup} part @param {number[]} ends @param {number} zero
 * @param {Set<string>} open @param {(name: string) => void} toggle @param {(head: [number, number]) => void} choose */
function groupRow(header, part, ends, zero, open, toggle, choose) {
  const name = `${part.kind} ${part.towards}`;
  const label = part.towards
    ? `${part.kind} towards ${part.towards === "more" ? header.more : header.less}`
    : part.kind;
  const opened = open.has(name);
  const inner = opened ? part.lines.map((line) => sumLine(line, part.lines, choose)) : [];
  return element(
    "div",
    {class: "av-part"},
    opener(label, part.sum, part.lines.length > 0 ? opened : null, () => toggle(name)),
    bar(ends, zero, part.sum < 0 ? "av-less" : "av-more"),
    element("div", {class: "av-inside"}, ...inner),
  );
}

/** A press opens what it is made of.
 * @param {string} label @param {number} number
 * @param {boolean | null} opened  null where there is nothing to open
 * @param {() => void} press */
function opener(label, number, opened, press) {
  const sign = element("span", {class: "av-opens", "aria-hidden": "true"}, opened === null ? "" : opened ? "▾" : "▸");
  const words = [sign, element("span", {class: "av-named"}, label), amount(number)];
  if (opened === null) return element("div", {class: "av-opener"}, ...words);
  return element(
    "button",
    {class: "av-opener", type: "button", "aria-expanded": String(opened), "data-part": label, onclick: press},
    ...words,
  );
}

/** @param {import("./reading.js").SumLine} line @param {import("./reading.js").SumLine[]} lines
 * @param {(head: [number, number]) => void} choose */
function sumLine(line, lines, choose) {
  const parts = [element("span", {class: "av-named"}, line.label), smallBar(line.number, lines), amount(line.number)];
  const {head} = line;
  return head
    ? element("button", {class: "av-sumline", type: "button", onclick: () => choose(head)}, ...parts)
    : element("div", {class: "av-sumline"}, ...parts);
}

/** @param {WhyHeader} header @param {Set<string>} open @param {(name: string) => void} toggle */
function wordRows(header, open, toggle) {
  if (header.words.length === 0) return [];
  const sum = header.words.reduce((total, {number}) => total + number, 0);
  const opened = open.has("words");
  const lines = header.words.map(({at, count, number}) =>
    element(
      "div",
      {class: "av-sumline"},
      element("span", {class: "av-named"}, at === null ? `${count} others` : wordAt(header, "key", at)),
      smallBar(number, header.words),
      amount(number),
    ),
  );
  return [
    element(
      "div",
      {class: "av-part"},
      opener("Heads, by key", sum, opened, () => toggle("words")),
      element("div", {class: "av-inside"}, ...(opened ? lines : [])),
    ),
  ];
}

/** @param {number} number */
export function amount(number) {
  return element("b", {class: `av-amount ${number < 0 ? "av-less" : "av-more"}`}, signed(number));
}

/** @param {string} words */
function quiet(words) {
  return element("span", {class: "av-quiet"}, words);
}

/** @param {number[]} ends  in percent of the width
 * @param {number} zero @param {string} kind */
function bar([from, to], zero, kind) {
  return element(
    "div",
    {class: "av-lane", "aria-hidden": "true"},
    element("i", {class: kind, style: `left: ${from}%; width: ${Math.max(to - from, 0.4)}%`}),
    element("u", {style: `left: ${zero}%`}),
  );
}

/** A bar on a scale that all lines beside it share, 0 in its middle.
 * @param {number} number @param {{number: number}[]} beside @param {string} kind */
export function smallBar(number, beside, kind = "") {
  const full = Math.max(...beside.map((one) => Math.abs(one.number)), 1e-9);
  const length = (Math.abs(number) / full) * 50;
  return bar(
    [number < 0 ? 50 - length : 50, number < 0 ? 50 : 50 + length],
    50,
    `${number < 0 ? "av-less" : "av-more"} ${kind}`,
  );
}
