// Lines to draw from the words of one text to those of another: press a word, then its word.

import {arrowStep, element, focused, svg} from "../../parts/element.js";

/** @import {Prediction, Question, Truth} from "../predict.js" */

/** @typedef {{written: string[], read: string[], label: string, above: string, below: string, linked: string, open: string}} Lines */

// A word's height, and the room of the lines in shares of their width.
const [WORD_HIGH, LINES_WIDE] = [30, 100];

/** @param {Question} question @param {number[]} guess */
export function linesOutcome({truth}, guess) {
  /** @type {number[]} */
  const strongest = truth?.opening.strongest ?? [];
  const wrong = strongest.flatMap((one, at) => (one === guess[at] ? [] : [at]));
  const count = strongest.length;
  return wrong[0] === undefined ? 0 : 1 + (count - wrong.length) * count + wrong[0];
}

/** @param {Prediction} prediction */
export function drawLines(prediction) {
  const {opening, truth, guess} = prediction.question;
  const texts = /** @type {Lines} */ (opening);
  const none = texts.read.length;
  const links = guess?.split(".").map(Number) ?? texts.written.map(() => none);
  const high = WORD_HIGH * Math.max(texts.written.length, none);
  const field = svg("svg", {
    height: high,
    viewBox: `0 0 ${LINES_WIDE} ${high}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  const tag = truth ? "span" : "button";
  const makeWord = (/** @type {string} */ name) =>
    element(tag, {class: "av-option", title: name, ...(truth ? {} : {type: "button"})}, name);
  const [written, read] = [texts.written.map(makeWord), texts.read.map(makeWord)];
  const box = element("div", {class: "av-gesture av-lines", role: "group", "aria-label": texts.label});
  box.append(makeColumn(texts.above, written, "av-from"), field, makeColumn(texts.below, read, "av-to"));
  if (truth) showLinks(field, texts, written, truth, guess === null ? null : links);
  else listenToLinks(prediction, {texts, written, read, field, links});
  return box;
}

/** @param {string} name @param {HTMLElement[]} words @param {string} kind */
function makeColumn(name, words, kind) {
  return element("div", {class: kind, role: "group", "aria-label": name}, element("p", {}, name), ...words);
}

/** @param {number} from @param {number} to @param {string} kind */
function link(from, to, kind) {
  const [y1, y2] = [from, to].map((at) => (at + 0.5) * WORD_HIGH);
  return svg("line", {x1: 0, y1, x2: LINES_WIDE, y2, class: kind, "vector-effect": "non-scaling-stroke"});
}

/** The strongest links, and dashed what the reader had drawn elsewhere.
 * @param {SVGElement} field @param {Lines} texts @param {HTMLElement[]} written @param {Truth} truth
 * @param {number[] | null} links */
function showLinks(field, texts, written, truth, links) {
  /** @type {{strongest: number[], weights: number[]}} */
  const {strongest, weights} = truth.opening;
  links?.forEach((to, from) => {
    if (to < texts.read.length && to !== strongest[from]) field.append(link(from, to, "av-was"));
  });
  strongest.forEach((to, from) => {
    const line = link(from, to, "av-own");
    line.style.strokeWidth = `${1 + 3 * (weights[from] ?? 0)}px`;
    field.append(line);
    written[from]?.append(element("small", {}, ` ${(weights[from] ?? 0).toFixed(2)}`));
    if (links && links[from] !== to) written[from]?.setAttribute("data-wrong", "true");
  });
}

/** @param {Prediction} prediction
 * @param {{texts: Lines, written: HTMLElement[], read: HTMLElement[], field: SVGElement, links: number[]}} drawn */
function listenToLinks(prediction, {texts, written, read, field, links}) {
  const none = texts.read.length;
  let chosen = 0;
  const show = () => {
    field.replaceChildren(
      ...links.flatMap((to, from) => (to < none ? [link(from, to, from === chosen ? "av-query" : "av-line")] : [])),
    );
    written.forEach((word, at) => {
      const to = links[at] ?? none;
      word.setAttribute("aria-pressed", String(at === chosen));
      word.setAttribute(
        "aria-label",
        `${texts.written[at]}: ${to < none ? `${texts.linked} ${texts.read[to]}` : texts.open}`,
      );
      word.dataset["done"] = String(to < none);
    });
    read.forEach((word, at) => word.setAttribute("aria-pressed", String(links[chosen] === at)));
  };
  written.forEach((word, at) =>
    word.addEventListener("click", () => {
      chosen = at;
      show();
    }),
  );
  read.forEach((word, at) =>
    word.addEventListener("click", () => {
      links[chosen] = links[chosen] === at ? none : at;
      prediction.choose(links.some((one) => one < none) ? links.join(".") : null);
      const next = links.findIndex((one, from) => one === none && from > chosen);
      if (links[chosen] === at && next >= 0) chosen = next;
      show();
    }),
  );
  for (const column of [written, read])
    for (const [at, word] of column.entries())
      word.addEventListener("keydown", (event) => {
        const [down, across] = arrowStep(event.key) ?? [0, 0];
        const other = column === written ? read : written;
        const next = across ? other[Math.min(at, other.length - 1)] : column[at + down];
        if (!next || focused(word) !== word || (!down && !across)) return;
        event.preventDefault();
        next.focus();
      });
  show();
}
