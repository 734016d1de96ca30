// The claim, and the two rows of words in which the pair is chosen.

import {element, focusOne, focused, placeByKey, svg} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {tidy} from "./scene.js";

/** @import {Opened, Pair} from "./numbers.js"
 * @import {Axis} from "../data/tokens.js" */

// Of a very long text so many words stand on each side of the chosen one.
const AROUND_WORD = 200;
// How wide the name of a row is, before its words.
const LABEL = 52;

/** What the pair says, in a sentence. @param {Opened} opened @param {Pair} pair @returns {(Node | string)[]} */
export function claimOf({queries, keys}, {query, key, weight, isBlocked}) {
  const [from, to] = [wordAt(queries, query, "av-query"), wordAt(keys, key, "av-keys")];
  if (isBlocked) return [from, " may not look at ", to, "."];
  return [from, ` takes ${weightText(weight)} of its weighted average from `, to, "."];
}

/** A word in its role's colour, told apart from its repeats. @param {Axis} axis @param {number} at @param {string} role */
function wordAt({names}, at, role) {
  return element("bdi", {class: `${role} av-mono`}, names[at]);
}

/** Both rows of words, each of which scrolls by itself, and lines between them as thick as the weights.
 * @param {HTMLElement} strip @param {Opened} opened @param {Pair} pair
 * @param {(query: number, key: number) => void} choose */
export function writeWords(strip, {queries, keys}, pair, choose) {
  const scrolled = [...strip.querySelectorAll(".av-words")].map((row) => row.scrollLeft);
  const reached = focused(strip)?.getAttribute("data-word") ?? "";
  const lines = svg("svg", {class: "av-between", "aria-hidden": "true", height: 30});
  const above = wordRow("query", queries, pair.query, null, (at) => choose(at, pair.key));
  const under = wordRow("key", keys, pair.key, pair, (at) => choose(pair.query, at));
  strip.replaceChildren(above, lines, under);
  for (const [number, row] of [above, under].entries()) {
    row.scrollLeft = scrolled[number] ?? 0;
    showChosen(row);
    row.onscroll = () => drawBetween(lines, above, under, pair);
  }
  /** @type {HTMLElement | null} */
  const again = reached ? strip.querySelector(`[data-word="${reached}"]`) : null;
  again?.focus({preventScroll: true});
  drawBetween(lines, above, under, pair);
}

/** @param {"query" | "key"} side @param {Axis} axis @param {number} chosen
 * @param {Pair | null} pair  of keys: which of them may be looked at
 * @param {(at: number) => void} choose */
function wordRow(side, axis, chosen, pair, choose) {
  const [first, last] = [Math.max(0, chosen - AROUND_WORD), Math.min(axis.count, chosen + AROUND_WORD + 1)];
  const buttons = Array.from({length: last - first}, (_, number) => {
    const at = first + number;
    const blocked = pair?.row[at] === -Infinity;
    const {mark, text} = axis.spellings[at];
    const spoken = `${side} ${axis.spoken[at]}${blocked ? ", blocked" : ""}`;
    const looks = {
      class: `${blocked ? "av-off" : ""} ${axis.dimmed[at] ? "av-added" : ""}`,
      "aria-pressed": at === chosen,
      "aria-label": spoken,
    };
    const node = element(
      "button",
      {type: "button", ...looks, "data-at": at, "data-word": `${side}-${at}`, tabindex: at === chosen ? 0 : -1},
      mark ? element("s", {}, mark) : null,
      text,
    );
    node.setAttribute("aria-pressed", String(at === chosen));
    node.onclick = () => choose(at);
    return node;
  });
  const row = element(
    "div",
    {class: `av-words av-${side}-words`, role: "group", "aria-label": side},
    element("i", {}, side),
    ...buttons,
  );
  row.onkeydown = (event) => walk(event, buttons);
  return row;
}

/** Arrow keys go from word to word; Enter and Space press.
 * @param {KeyboardEvent} event @param {HTMLElement[]} buttons */
function walk(event, buttons) {
  const at = buttons.indexOf(/** @type {HTMLElement} */ (event.target));
  const to = placeByKey(event.key, at, buttons.length);
  if (at < 0 || to === null || !buttons[to]) return;
  event.preventDefault();
  focusOne(buttons, buttons[to]);
}

/** @param {SVGElement} lines @param {HTMLElement} above @param {HTMLElement} under @param {Pair} pair */
function drawBetween(lines, above, under, {query, key, weights, row}) {
  lines.replaceChildren();
  const from = /** @type {HTMLElement | null} */ (above.querySelector(`[data-at="${query}"]`));
  if (!from) return;
  const start = tidy(middleIn(above, from));
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (under.querySelectorAll("[data-at]"))) {
    const at = Number(node.dataset["at"]);
    if (row[at] === -Infinity || (weights[at] < 0.01 && at !== key && weights.length > 60)) continue;
    const end = tidy(middleIn(under, node));
    const width = tidy(Math.max(0.5, weights[at] * 9));
    const kind = at === key ? "av-link av-told" : "av-link";
    lines.append(svg("path", {d: `M${start} 1C${start} 16 ${end} 14 ${end} 29`, class: kind, "stroke-width": width}));
  }
}

/** Where the middle of a word is seen in its row; one that is scrolled out of sight, at the row's edge.
 * @param {HTMLElement} row @param {HTMLElement} word */
function middleIn(row, word) {
  return Math.min(row.clientWidth, Math.max(LABEL, word.offsetLeft + word.offsetWidth / 2 - row.scrollLeft));
}

/** Bring a row's chosen word into sight. @param {HTMLElement} row */
function showChosen(row) {
  /** @type {HTMLElement | null} */
  const chosen = row.querySelector("[aria-pressed=true]");
  if (!chosen) return;
  const [left, right] = [chosen.offsetLeft, chosen.offsetLeft + chosen.offsetWidth];
  const isSeen = left >= row.scrollLeft + LABEL && right <= row.scrollLeft + row.clientWidth;
  if (!isSeen) row.scrollLeft = Math.max(0, (left + right + LABEL - row.clientWidth) / 2 - LABEL);
}
