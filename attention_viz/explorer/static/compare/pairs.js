// A query's row in two heads over the paired tokens: bars up for the first, down for the second. A press on a token makes
// it the query, pointing at one shows its row meanwhile.

import {element, focusOne, listener, placeByKey, within} from "../parts/element.js";
import {weightText} from "../data/scale.js";

/** @import {CompareHeader, KeyPlaces, Paired} from "./compare.js" */

/** What hears the reader: `point` a token that is pointed at, null for none, `choose` one that is pressed.
 * @typedef {{point: (query: number | null) => void, choose: (query: number) => void}} PairHearing */

/** A row as it is drawn; `query` is its place, `shown` that of the chosen one.
 * @typedef {{one: Float32Array, other: Float32Array, query: number, shown: number, keys: KeyPlaces}} PairRow */

/** A token's column. @typedef {{node: HTMLElement, words: HTMLElement, change: HTMLElement, sides: PairSide[]}} PairColumn */
/** @typedef {{bar: HTMLElement, number: HTMLElement, word: HTMLElement | null}} PairSide */

// From how much a change is written beside its bars; no bar is as long as the track for less than this.
const [WRITTEN_CHANGE, LEAST_TRACK] = [0.05, 0.2];

/** The strip of pairs. @typedef {ReturnType<typeof createPairs>} Pairs */

/** @param {PairHearing} hearing */
export function createPairs(hearing) {
  const line = element("div", {class: "av-asking", role: "group", "aria-label": "Queries", hidden: true});
  const strip = element("div", {class: "av-pairs", role: "group", "aria-label": "The query\u2019s row in both heads"});
  const frame = element("div", {class: "av-pairs-frame"}, strip);
  const node = element("section", {class: "av-row", "data-testid": "compare-row"}, line, frame);
  /** @type {PairColumn[]} */
  let columns = [];
  /** @type {HTMLElement[]} */
  let queries = [];
  /** @type {CompareHeader | null} */
  let header = null;
  const hear = listener(node, new AbortController().signal);
  const placeAt = (/** @type {Event} */ event, selector = "[data-query]") => {
    const found = within(event, selector);
    return found ? Number(found.dataset["query"]) : null;
  };
  hear("click", (event) => {
    const place = placeAt(event);
    if (place !== null) hearing.choose(place);
  });
  hear("pointerover", (event) => {
    if (event.pointerType !== "touch") hearing.point(placeAt(event, ".av-names[data-query], .av-asks[data-query]"));
  });
  hear("pointerleave", () => hearing.point(null));
  hear("keydown", (event) => {
    const place = placeAt(event);
    if (place === null || !header) return;
    const turned = header.turned && {ArrowLeft: "ArrowRight", ArrowRight: "ArrowLeft"}[event.key];
    const to = placeByKey(turned || event.key, place, queries.length);
    if (event.key === "Enter" || event.key === " ") hearing.choose(place);
    else if (to === null) return;
    else if (queries[to]) {
      focusOne(queries, queries[to]);
      hearing.choose(to);
    }
    event.preventDefault();
  });
  return {
    node,
    /** @param {CompareHeader} taken */
    build(taken) {
      header = taken;
      strip.dir = line.dir = taken.turned ? "rtl" : "ltr";
      columns = taken.keys.map((pair, place) => pairColumn(pair, taken.queries ? null : place));
      strip.replaceChildren(sideNames(), ...columns.map((column) => column.node));
      queries = taken.queries ? taken.queries.map(askingWord) : columns.map(({words}) => words);
      line.replaceChildren(...(taken.queries ? queries : []));
      line.hidden = !taken.queries;
      frame.scrollLeft = 0;
    },
    /** @param {PairRow} row */
    draw(row) {
      const full = Math.max(LEAST_TRACK, ...lengths(row.one), ...lengths(row.other));
      columns.forEach((column, place) => drawPair(column, place, row, full));
      queries.forEach((word, place) => {
        word.classList.toggle("av-asked", place === row.query);
        word.setAttribute("aria-pressed", String(place === row.shown));
        word.tabIndex = place === row.shown ? 0 : -1;
      });
    },
    /** Scroll a token into the strip's middle. @param {number} place */
    reveal(place) {
      const column = columns[place]?.node;
      if (!column || frame.scrollWidth <= frame.clientWidth) return;
      const middle = column.offsetLeft + column.offsetWidth / 2;
      frame.scrollLeft = header?.turned
        ? middle - frame.scrollWidth + frame.clientWidth / 2
        : middle - frame.clientWidth / 2;
    },
  };
}

function sideNames() {
  return element("div", {class: "av-side-names", "aria-hidden": "true"}, element("b", {}, "1"), element("b", {}, "2"));
}

/** @param {Paired} pair @param {number | null} query  its place where it can ask, too @returns {PairColumn} */
function pairColumn([one, other], query) {
  const asks = query === null ? {} : {role: "button", "data-query": query};
  const both = one === other ? [one] : [one, other];
  const written = both.map((word) => element("bdi", {class: "av-name"}, word ?? "\u2013"));
  both.forEach((word, at) => written[at].classList.toggle("av-lacks", word === null));
  const change = element("em", {});
  const words = element("div", {class: "av-names", ...asks}, ...written);
  words.title = both.map((word) => word ?? "\u2013").join(" \u2192 ");
  const sides = ["av-up", "av-down"].map((name) => {
    const [number, bar] = [element("b", {}), element("i", {})];
    return {track: element("div", {class: name}, ...(name === "av-up" ? [number, bar] : [bar, number])), bar, number};
  });
  const of = query === null ? {} : {"data-query": query};
  const node = element("div", {class: "av-column", ...of}, sides[0].track, words, change, sides[1].track);
  node.classList.toggle("av-differs", one !== other);
  return {node, words, change, sides: sides.map(({bar, number}) => ({bar, number, word: null}))};
}

/** @param {Paired} pair @param {number} place */
function askingWord([one, other], place) {
  const name = one === other ? one : [one ?? "\u2013", other ?? "\u2013"].join(" \u2192 ");
  return element("div", {class: "av-asks", role: "button", "data-query": place}, element("bdi", {}, name));
}

/** @param {PairColumn} column @param {number} place @param {PairRow} row @param {number} full */
function drawPair({node, change, sides}, place, {one, other, keys}, full) {
  const weights = [one[place], other[place]];
  weights.forEach((weight, side) => {
    const {bar, number} = sides[side];
    const there = Number.isFinite(weight);
    bar.style.height = there ? `${(Math.abs(weight) / full) * 100}%` : "0";
    bar.classList.toggle("av-minus", weight < 0);
    bar.classList.toggle("av-named", keys[side] === place);
    number.textContent = there ? weightText(weight) : "";
    number.title = there ? String(weight) : "";
  });
  node.classList.toggle(
    "av-blocked",
    weights.every((weight) => weight === Infinity),
  );
  const moved = (Number.isFinite(other[place]) ? other[place] : 0) - (Number.isFinite(one[place]) ? one[place] : 0);
  const isLarge = Math.abs(moved) >= WRITTEN_CHANGE;
  change.textContent = isLarge ? `${moved > 0 ? "+" : ""}${weightText(moved)}` : "";
  change.className = moved > 0 ? "av-gain" : "av-loss";
}

/** @param {Float32Array} row */
function lengths(row) {
  return [...row].filter(Number.isFinite).map(Math.abs);
}
