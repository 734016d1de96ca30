// The claim, and the two rows of words in which the pair is chosen.

import {element, focusOne, focused, placeByKey, svg} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {MARKS} from "../data/spelling.js";
import {fateOf, isUnpicked} from "./numbers.js";
import {tidy} from "./scene.js";

/** @import {Opened, PackedMixer, Pair} from "./numbers.js"
 * @import {Axis} from "../data/tokens.js" */

// Of a very long text so many words stand on each side of the chosen one.
const AROUND_WORD = 200;
// How wide the name of a row is, before its words; what is apart between words; and what stands for folded ones.
const [LABEL, WORD_GAP, FOLDED] = [52, 4, 40];
// Words that are further apart are never measured: those between them are folded first.
const FAR = 80;

/** The words that are folded, from the first to the last. @typedef {[from: number, to: number]} Fold */

/** What the pair says, in a sentence. @param {Opened} opened @param {Pair} pair @returns {(Node | string)[]} */
export function claimOf({header, queries, keys}, pair) {
  const {query, key, weight, isBlocked} = pair;
  const [from, to] = [wordAt(queries, query, "av-query"), wordAt(keys, key, "av-keys")];
  const looks = weight < 0 ? "av-claim-number av-taken" : "av-claim-number";
  const number = element("span", {class: looks}, weightText(Math.abs(weight)));
  if (header.mixer) return mixedClaim(header.mixer, [from, to], number, query === key, {weight, isBlocked});
  if (isBlocked) return [from, isUnpicked(pair, key) ? " didn\u2019t pick " : " may not look at ", to, "."];
  return [from, " takes ", number, " of its weighted average from ", to, "."];
}

/** The same without a softmax, as Explore says it. @param {PackedMixer} mixer
 * @param {[from: HTMLElement, to: HTMLElement]} words @param {HTMLElement} number @param {boolean} isOwn
 * @param {Pick<Pair, "weight" | "isBlocked">} pair @returns {(Node | string)[]} */
function mixedClaim({kind}, [from, to], number, isOwn, {weight, isBlocked}) {
  const rule = element("small", {class: "av-claim-rule"}, `${kind}, no softmax`);
  if (isBlocked) return ["Nothing of ", to, " can arrive at ", from, ". ", rule];
  if (weight < 0) return [from, " has ", number, " of ", to, " taken away. ", rule];
  return [to, " carries ", number, " to ", isOwn ? "itself" : from, ". ", rule];
}

/** A word in its role's colour, told apart from its repeats. @param {Axis} axis @param {number} at @param {string} role */
function wordAt({names}, at, role) {
  return element("bdi", {class: `${role} av-mono`}, names[at]);
}

/** Both rows of words, which scroll together, and lines between them as thick as the weights. What lies between two
 * chosen words that are too far apart to be seen at once is folded, in both rows alike.
 * @param {HTMLElement} strip @param {Opened} opened @param {Pair} pair
 * @param {(query: number, key: number) => void} choose */
export function writeWords(strip, {queries, keys}, pair, choose) {
  // The chosen words stick to the strip's ends: where they really are is measured without that.
  strip.classList.add("av-measured");
  const before = strip.scrollLeft;
  const reached = focused(strip)?.getAttribute("data-word") ?? "";
  const [low, high] = [Math.min(pair.query, pair.key), Math.max(pair.query, pair.key)];
  const isOne = queries.labels.join("\n") === keys.labels.join("\n");
  /** @type {Fold | null} */
  let fold = isOne && high - low > FAR ? [low + FAR / 2, high - FAR / 2] : null;
  const write = () => {
    const lines = svg("svg", {class: "av-between", "aria-hidden": "true", height: 30});
    const take = (/** @type {number} */ query, /** @type {number} */ key) => {
      if (query === pair.query && key === pair.key) showPressed(strip);
      else choose(query, key);
    };
    const above = wordRow("query", queries, pair.query, null, fold, (at) => take(at, pair.key));
    const under = wordRow("key", keys, pair.key, pair, fold, (at) => take(pair.query, at));
    strip.replaceChildren(above, element("div", {class: "av-between-rows"}, lines, element("i", {})), under);
    return {lines, above, under};
  };
  let rows = write();
  const room = strip.clientWidth - LABEL - 12;
  const span = isOne && room > 0 ? spanOf(rows.above, low, high) : null;
  if (span && span.reduce((sum, one) => sum + one, 0) > room) {
    fold = foldOf(span, low, room);
    rows = write();
  }
  if (!isOne) alignRows(rows.above, rows.under);
  strip.scrollLeft = before;
  showPressed(strip);
  strip.classList.add("av-measured");
  /** @type {HTMLElement | null} */
  const again = reached ? strip.querySelector(`[data-word="${reached}"]`) : null;
  again?.focus({preventScroll: true});
  drawBetween(rows.lines, rows.above, rows.under, pair);
  strip.classList.remove("av-measured");
}

/** Lead back to the chosen words. @param {HTMLElement} strip */
function showPressed(strip) {
  strip.classList.add("av-measured");
  showChosen(strip, [...strip.querySelectorAll("[aria-pressed=true]")]);
  strip.classList.remove("av-measured");
}

/** How wide each word of a row is from one position to another, with what is apart between them.
 * @param {HTMLElement} row @param {number} low @param {number} high */
function spanOf(row, low, high) {
  const widths = new Array(high - low + 1).fill(0);
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-at]"))) {
    const at = Number(node.dataset["at"]);
    if (at >= low && at <= high) widths[at - low] = node.offsetWidth + WORD_GAP;
  }
  return widths;
}

/** Which words between two are folded, so that both are seen at once: the ends' neighbours stay while there is room.
 * @param {number[]} widths  from one to the other, both included @param {number} low  the first one's position
 * @param {number} room @returns {Fold} */
export function foldOf(widths, low, room) {
  const last = widths.length - 1;
  let left = room - widths[0] - widths[last] - FOLDED;
  let [from, to] = [1, last - 1];
  while (from < to) {
    const isLeft = from <= last - to;
    const next = widths[isLeft ? from : to];
    // What is folded already has no width.
    if (next > left || next === 0) break;
    left -= next;
    if (isLeft) from += 1;
    else to -= 1;
  }
  return [low + from, low + to];
}

/** Of two texts, bring the chosen words under each other. @param {HTMLElement} above @param {HTMLElement} under */
function alignRows(above, under) {
  const middles = [above, under].map((row) => {
    const chosen = /** @type {HTMLElement | null} */ (row.querySelector("[aria-pressed=true]"));
    return chosen ? chosen.offsetLeft + chosen.offsetWidth / 2 : 0;
  });
  const most = Math.max(...middles);
  for (const [number, row] of [above, under].entries()) {
    const name = /** @type {HTMLElement} */ (row.firstElementChild);
    name.style.marginRight = `${Math.round(most - middles[number])}px`;
  }
}

/** @param {"query" | "key"} side @param {Axis} axis @param {number} chosen
 * @param {Pair | null} pair  of keys: which of them may be looked at
 * @param {Fold | null} fold @param {(at: number) => void} choose */
function wordRow(side, axis, chosen, pair, fold, choose) {
  const [low, high] = fold ? [fold[0], fold[1]] : [chosen, chosen];
  const [first, last] = [Math.max(0, low - AROUND_WORD), Math.min(axis.count, high + AROUND_WORD + 1)];
  const shown = Array.from({length: last - first}, (_, number) => first + number);
  const buttons = shown
    .filter((at) => !fold || at < fold[0] || at > fold[1])
    .map((at) => {
      const blocked = pair?.row[at] === -Infinity;
      const {mark} = axis.spellings[at];
      const left = pair !== null && isUnpicked(pair, at);
      const spoken = `${side} ${axis.spoken[at]}${pair && blocked ? `, ${fateOf(pair, at)}` : ""}`;
      const looks = {
        class: `${left ? "av-left" : blocked ? "av-off" : ""} ${axis.dimmed[at] ? "av-added" : ""}`,
        "aria-pressed": at === chosen,
        "aria-label": spoken,
      };
      const node = element(
        "button",
        {type: "button", ...looks, "data-at": at, "data-word": `${side}-${at}`, tabindex: at === chosen ? 0 : -1},
        mark === MARKS.space ? element("s", {}, mark) : null,
        element("bdi", {}, axis.names[at]),
      );
      node.setAttribute("aria-pressed", String(at === chosen));
      node.onclick = () => choose(at);
      return node;
    });
  /** @type {HTMLElement[]} */
  const nodes = [...buttons];
  if (fold) {
    const words = `${fold[1] - fold[0] + 1} words`;
    const after = buttons.findIndex((node) => Number(node.dataset["at"]) > fold[1]);
    nodes.splice(after < 0 ? nodes.length : after, 0, element("span", {class: "av-folded", title: words}, "\u22ef"));
  }
  const row = element(
    "div",
    {class: `av-words av-${side}-words`, role: "group", "aria-label": side},
    element("i", {}, side),
    ...nodes,
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
function drawBetween(lines, above, under, {query, key, weights, shares, row}) {
  lines.replaceChildren();
  lines.setAttribute("width", String(Math.max(above.scrollWidth, under.scrollWidth)));
  const from = /** @type {HTMLElement | null} */ (above.querySelector(`[data-at="${query}"]`));
  if (!from) return;
  const start = tidy(middleOf(from));
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (under.querySelectorAll("[data-at]"))) {
    const at = Number(node.dataset["at"]);
    if (row[at] === -Infinity || (shares[at] < 0.01 && at !== key && weights.length > 60)) continue;
    const end = tidy(middleOf(node));
    const width = tidy(Math.max(0.5, shares[at] * 9));
    const kind = `av-link ${at === key ? "av-told" : ""} ${weights[at] < 0 ? "av-less" : ""}`;
    lines.append(svg("path", {d: `M${start} 1C${start} 16 ${end} 14 ${end} 29`, class: kind, "stroke-width": width}));
  }
}

/** Where the middle of a word is, from its row's beginning. @param {HTMLElement} word */
function middleOf(word) {
  return word.offsetLeft + word.offsetWidth / 2;
}

/** Bring the chosen words into sight. @param {HTMLElement} strip @param {Element[]} chosen */
function showChosen(strip, chosen) {
  const words = /** @type {HTMLElement[]} */ (chosen);
  if (!words.length) return;
  const left = Math.min(...words.map((one) => one.offsetLeft));
  const right = Math.max(...words.map((one) => one.offsetLeft + one.offsetWidth));
  const isSeen = left >= strip.scrollLeft + LABEL && right <= strip.scrollLeft + strip.clientWidth;
  if (!isSeen) strip.scrollLeft = Math.max(0, (left + right + LABEL - strip.clientWidth) / 2 - LABEL);
}
