// A query's row in two heads over the paired tokens: bars up for the first, down for the second. A press on a token makes
// it the query, pointing at one shows its row meanwhile.

import {element, isPointing, listener, placeByKey, within} from "../parts/element.js";
import {weightText} from "../data/scale.js";

/** @import {CompareHeader, KeyPlaces, Paired} from "./compare.js" */

/** What hears the reader: `point` a query that is pointed at, or a key's bars; `choose` a query that is pressed.
 * @typedef {{point: (query: number | null, key: number | null) => void, choose: (query: number) => void}} PairHearing */

/** A row as it is drawn; `query` is its place, `shown` that of the chosen one.
 * @typedef {{one: Float32Array, other: Float32Array, query: number, shown: number, keys: KeyPlaces}} PairRow */

/** A token's column. @typedef {{node: HTMLElement, words: HTMLElement, change: HTMLElement, sides: PairSide[]}} PairColumn */
/** @typedef {{bar: HTMLElement, number: HTMLElement, word: HTMLElement | null}} PairSide */

// How often a repeated word was there before, which may differ between the texts.
const NUMBER = /[\u2080-\u2089]+/gu;
/** @type {Record<string, string>} */
const TURNED_KEYS = {ArrowLeft: "ArrowRight", ArrowRight: "ArrowLeft"};
// From how much a change is written beside its bars; no bar is as long as the track for less than this.
const [WRITTEN_CHANGE, LEAST_TRACK] = [0.05, 0.2];
// What the sides' numbers, the fading ends and the query's column, which stays at an end, take of the strip's width.
const BESIDE = 220;
// A smaller weight is as good as none.
const FAINT = 0.005;

/** The strip of paired tokens, below a line of queries where those are other tokens. */
export class PairStrip {
  /** @param {PairHearing} hearing @param {AbortSignal} signal */
  constructor(hearing, signal) {
    this.hearing = hearing;
    this.line = element("div", {class: "av-asking", role: "group", "aria-label": "Queries", hidden: true});
    this.strip = element("div", {class: "av-pairs", role: "group", "aria-label": "The query\u2019s row in both heads"});
    this.frame = element("div", {class: "av-pairs-frame"}, this.strip);
    this.node = element("section", {class: "av-row", "data-testid": "compare-row"}, this.line, this.frame);
    /** @type {PairColumn[]} */
    this.columns = [];
    /** @type {HTMLElement[]} */
    this.queries = [];
    this.turned = false;
    const hear = listener(this.node, signal);
    hear("click", (event) => {
      const place = queryAt(event);
      if (place !== null) hearing.choose(place);
    });
    hear("pointerover", (event) => {
      if (!isPointing(event)) return;
      const query = queryAt(event, "[data-query]:is(.av-names, .av-asks)");
      const bars = query === null ? within(event, ".av-up, .av-down") : null;
      hearing.point(query, bars ? this.columns.findIndex(({node}) => node.contains(bars)) : null);
    });
    hear("pointerleave", () => hearing.point(null, null));
    this.frame.addEventListener("scroll", () => this.fade(), {signal});
    hear("keydown", (event) => this.walk(event));
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const place = queryAt(event);
    if (place === null) return;
    const back = this.turned ? TURNED_KEYS[event.key] : undefined;
    const to = placeByKey(back ?? event.key, place, this.queries.length);
    if (event.key === "Enter" || event.key === " ") this.hearing.choose(place);
    else if (to === null) return;
    else if (this.queries[to]) {
      this.queries[to].focus();
      this.hearing.choose(to);
    }
    event.preventDefault();
  }

  /** @param {CompareHeader} header */
  build({queries, keys, turned, signed}) {
    this.turned = turned;
    this.node.classList.toggle("av-signed", signed);
    this.strip.dir = this.line.dir = turned ? "rtl" : "ltr";
    this.columns = keys.map((pair, place) => pairColumn(pair, queries ? null : place));
    this.strip.replaceChildren(sideNames(), ...this.columns.map(({node}) => node));
    this.queries = queries ? queries.map(askingWord) : this.columns.map(({words}) => words);
    this.line.replaceChildren(...(queries ? this.queries : []));
    this.line.hidden = !queries;
    this.frame.dir = this.strip.dir;
    this.frame.scrollLeft = 0;
    this.fade();
  }

  /** Fade the strip where it goes on. */
  fade() {
    const {scrollLeft, scrollWidth, clientWidth} = this.frame;
    const hidden = scrollWidth - clientWidth;
    const before = Math.abs(scrollLeft);
    this.frame.classList.toggle("av-goes-before", before > 1);
    this.frame.classList.toggle("av-goes-after", before < hidden - 1);
  }

  /** @param {PairRow} row */
  draw(row) {
    const full = Math.max(LEAST_TRACK, ...lengths(row.one), ...lengths(row.other));
    this.columns.forEach((column, place) => drawPair(column, place, row, full));
    this.queries.forEach((word, place) => {
      word.classList.toggle("av-asked", place === row.query);
      word.setAttribute("aria-pressed", String(place === row.shown));
      word.tabIndex = place === row.shown ? 0 : -1;
    });
  }

  /** Scroll the keys into the strip's middle, where the row's longest bars are, with the query if all of them fit.
   * @param {number} query @param {number[]} keys */
  reveal(query, keys) {
    const {columns, frame, queries} = this;
    const asks = columns[query]?.words === queries[query];
    if (!asks) queries[query]?.scrollIntoView({block: "nearest", inline: "center"});
    if (frame.scrollWidth > frame.clientWidth) {
      const ways = [[...(asks ? [query] : []), ...keys], keys, keys.slice(0, 1)].map((places) => this.span(places));
      const best = ways.find(({left, right}) => right - left <= frame.clientWidth - BESIDE) ?? ways[2];
      // In a line from right to left, places to the left are below 0.
      frame.scrollLeft = (best.left + best.right) / 2 - frame.clientWidth / 2;
    }
    this.fade();
  }

  /** From where to where some columns stand, in pixels. @param {number[]} places */
  span(places) {
    const nodes = places.flatMap((at) => this.columns[at]?.node ?? []);
    return {
      left: Math.min(...nodes.map((node) => node.offsetLeft)),
      right: Math.max(...nodes.map((node) => node.offsetLeft + node.offsetWidth)),
    };
  }
}

/** The query whose word an event happened in. @param {Event} event */
function queryAt(event, selector = "[data-query]") {
  const found = within(event, selector);
  return found ? Number(found.dataset["query"]) : null;
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
  node.classList.toggle("av-differs", one?.replace(NUMBER, "") !== other?.replace(NUMBER, ""));
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
    bar.parentElement?.style.setProperty("--av-length", String(there ? Math.abs(weight) / full : 0));
    bar.parentElement?.classList.toggle("av-below", weight < 0);
    bar.classList.toggle("av-named", keys[side] === place);
    number.textContent = there ? weightText(weight) : "";
    number.title = there ? String(weight) : "";
    number.classList.toggle("av-faint", Math.abs(weight) < FAINT);
  });
  node.classList.toggle(
    "av-blocked",
    weights.every((weight) => weight === Infinity),
  );
  const [before, after] = weights.map((weight) => (Number.isFinite(weight) ? weight : 0));
  const moved = after - before;
  const isLarge = Math.abs(moved) >= WRITTEN_CHANGE;
  // The difference of the numbers as they are shown.
  const shown = Number(after.toFixed(2)) - Number(before.toFixed(2));
  change.textContent = isLarge ? `${moved > 0 ? "+" : ""}${weightText(shown)}` : "";
  change.className = moved > 0 ? "av-gain" : "av-loss";
}

/** @param {Float32Array} row */
function lengths(row) {
  return [...row].filter(Number.isFinite).map(Math.abs);
}
