// One line of tokens; of a long text those that are in sight and some around them, with room for the others.

import {element} from "./element.js";
import {bracketed} from "../overview/characters.js";
import {runsFromTheRight} from "../data/spelling.js";
import {begins, writeToken} from "../data/tokens.js";

/** @import {Places} from "../data/head.js"
 * @import {Axis} from "../data/tokens.js" */

/** One line of tokens: their elements, where the middle of each lies, and how each looks now.
 * @typedef {object} Line
 * @property {HTMLElement} node
 * @property {Axis} axis
 * @property {Places} places  all of them
 * @property {Map<number, HTMLElement>} tokens  those that are on the page
 * @property {Map<number, number>} centres
 * @property {Map<number, string>} looks
 * @property {number} from  the first that is on the page
 * @property {number} average  how wide a token is on average, with its gap; 0 before it was measured
 * @property {number} moved  by how much the tokens that stayed have moved when others came
 * @property {[HTMLElement, HTMLElement]} room  before and after */

// A line of up to so many tokens is on the page whole; of a longer one so many are, more than any screen has room for.
const WHOLE_LINE = 512;
const MOST_TOKENS = 240;
// An estimate until the first tokens are measured, in pixels.
const USUAL_WIDTH = 48;

/** A line of tokens, at its beginning.
 * @param {Axis} axis @param {Places} places @param {string} label @returns {Line} */
export function createLine(axis, places, label) {
  const node = element("div", {
    class: "av-line",
    role: "listbox",
    "aria-label": label,
    "aria-orientation": "horizontal",
    dir: axis.fromTheRight ? "rtl" : "ltr",
  });
  node.style.setProperty("--av-count", String(places.length));
  /** @type {[HTMLElement, HTMLElement]} */
  const room = [element("div", {"aria-hidden": "true"}), element("div", {"aria-hidden": "true"})];
  for (const one of room) one.style.flex = "none";
  /** @type {Line} */
  const line = {
    ...{node, axis, places, room, from: 0, average: 0, moved: 0},
    ...{tokens: new Map(), centres: new Map(), looks: new Map()},
  };
  fill(line, 0);
  return line;
}

/** Put those tokens on the page that begin at a place of the line. @param {Line} line @param {number} from */
function fill(line, from) {
  const {node, axis, places, tokens, looks, centres, room} = line;
  const shown = places.length <= WHOLE_LINE ? places : places.subarray(from, from + MOST_TOKENS);
  line.from = from;
  for (const found of [tokens, looks, centres]) found.clear();
  for (const place of shown) tokens.set(place, tokenAt(axis, places, place));
  tokens.get(shown[0])?.setAttribute("tabindex", "0");
  const width = line.average || USUAL_WIDTH;
  const [before, after] = [from, places.length - from - shown.length];
  room[0].style.width = `${before * width}px`;
  room[1].style.width = `${after * width}px`;
  node.replaceChildren(...(before ? [room[0]] : []), ...bracketed(axis, tokens), ...(after ? [room[1]] : []));
}

/** @param {Axis} axis @param {Places} places @param {number} place */
function tokenAt(axis, places, place) {
  const token = element("div", {
    class: "av-token",
    role: "option",
    tabindex: "-1",
    "aria-selected": "false",
    "aria-label": axis.spoken[place],
    // Its mark stands where the line has the token before it, and of a word from right to left at that word's right.
    dir: axis.fromTheRight || runsFromTheRight(axis.spellings[place].text) ? "rtl" : "ltr",
  });
  if (places.length > WHOLE_LINE) {
    token.setAttribute("aria-posinset", String(places.indexOf(place) + 1));
    token.setAttribute("aria-setsize", String(places.length));
  }
  if (axis.dimmed[place]) token.classList.add("av-special");
  if (axis.origins[place]) token.classList.add(`av-${axis.origins[place]}`);
  if (begins(axis, place)) token.classList.add("av-begins");
  token.dataset["place"] = String(place);
  return writeToken(token, axis, place);
}

/** Find out where the tokens on the page lie. @param {Line} line */
export function measureLine(line) {
  const {node, tokens, centres, places, room} = line;
  for (const [place, token] of tokens) centres.set(place, node.offsetLeft + token.offsetLeft + token.offsetWidth / 2);
  const all = [...centres.values()];
  if (line.average || tokens.size === places.length || all.length < 2 || all[all.length - 1] === all[0]) return;
  line.average = (all[all.length - 1] - all[0]) / (all.length - 1);
  room[1].style.width = `${(places.length - line.from - tokens.size) * line.average}px`;
}

/** Have a token on the page; tells whether the line had to turn to it.
 * @param {Line | undefined} line @param {number | null} place */
export function showPlace(line, place) {
  if (!line || place === null || line.tokens.has(place)) return false;
  const at = line.places.indexOf(place);
  if (at < 0) return false;
  fill(line, firstAround(line, at));
  return true;
}

/** Have the tokens around a point of the line on the page; tells whether the line had to turn to them.
 *
 * `moved` then says by how much those moved that were there before, as tokens are wider or narrower than the average.
 * @param {Line} line
 * @param {number} middle  in pixels
 * @param {number} width  of what is in sight */
export function turnTo(line, middle, width) {
  const {places, tokens, centres, from} = line;
  if (tokens.size === places.length || centres.size === 0) return false;
  // Of a line that runs from right to left the first token is the last from the left.
  const along = alongOf(line, middle);
  const [first, last] = [from, from + tokens.size - 1].map((index) => alongOf(line, centreAt(line, index)));
  const missing = (from > 0 && along - width < first) || (from + tokens.size < places.length && along + width > last);
  if (!missing) return false;
  const inside = along >= first && along <= last;
  const near = (/** @type {number} */ place) => Math.abs(Number(centres.get(place)) - middle);
  const anchor = inside
    ? [...centres.keys()].reduce((best, place) => (near(place) < near(best) ? place : best), places[from])
    : places[Math.min(places.length - 1, Math.max(0, Math.floor(along / line.average)))];
  const before = centres.get(anchor);
  fill(line, firstAround(line, places.indexOf(anchor)));
  measureLine(line);
  line.moved = before === undefined ? 0 : Number(centres.get(anchor)) - before;
  return true;
}

/** Where the middle of the line's n-th token lies; an estimate where it isn't on the page. @param {Line} line
 * @param {number} index */
export function centreAt(line, index) {
  const {centres, places, from, average, node} = line;
  const known = centres.get(places[index]);
  if (known !== undefined) return known;
  const width = average || USUAL_WIDTH;
  const along = index < from ? (index + 0.5) * width : node.offsetWidth - (places.length - index - 0.5) * width;
  return node.offsetLeft + (line.axis.fromTheRight ? node.offsetWidth - along : along);
}

/** How far a point lies along the line, from where it begins to be read. @param {Line} line @param {number} at */
function alongOf({node, axis}, at) {
  return axis.fromTheRight ? node.offsetLeft + node.offsetWidth - at : at - node.offsetLeft;
}

/** @param {Line} line @param {number} at */
function firstAround({places}, at) {
  return Math.min(Math.max(0, at - MOST_TOKENS / 2), Math.max(0, places.length - MOST_TOKENS));
}
