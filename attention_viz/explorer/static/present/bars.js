// A row of numbers as bars below each other; at first blind, or as they were before something was changed.

import {weightText} from "../data/scale.js";
import {element} from "../parts/element.js";

/** @import {Row} from "./slides.js"
 * @import {Room} from "./line.js" */

// A bar's row is at least so high.
export const LEAST_ROW = 44;
// Letters from which on a name, or what stands behind a bar, needs more room.
const [LONG_NAME, LONG_VALUE] = [14, 6];

/** The picture; its parts of class `av-blind` are seen while the class is asked, those of class `av-told` afterwards.
 * @param {Row} row @param {Room} room */
export function drawBars({tokens, values, before, dim, query, key, cuts, unit, written, asked, neutral}, room) {
  const numbers = [...values, ...before, 0].map((value) => value ?? 0);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const span = high - low || 1;
  const share = (/** @type {number} */ value) => (100 * Math.abs(value)) / span;
  const start = (/** @type {number} */ value) => (100 * (Math.min(value, 0) - low)) / span;
  const count = tokens.length + cuts.length;
  const height = Math.min(76, Math.max(LEAST_ROW, Math.floor(room.height / count)));
  const list = element("div", {class: "av-rows", role: "group", "aria-label": `Bars: each ${unit}`});
  list.style.setProperty("--row", `${height}px`);
  list.classList.toggle(
    "av-long-names",
    tokens.some((text) => text.length > LONG_NAME),
  );
  list.classList.toggle("av-neutral", neutral);
  const longest = Math.max(0, ...written.map((text) => text.length));
  list.classList.toggle("av-long-values", longest > LONG_VALUE);
  if (longest > LONG_VALUE) list.style.setProperty("--room", `${longest * 22 + 40}px`);
  // "blocked" stands behind what was there before, as large as the number that is asked for.
  else if (key !== null && values[key] === null) list.style.setProperty("--room", "290px");
  tokens.forEach((text, place) => {
    if (cuts.includes(place)) list.append(leftOut());
    const marks = [place === query ? "av-is-query" : "", place === key ? "av-is-key" : "", dim[place] ? "av-dim" : ""];
    const said = room.vote === place ? " av-voted" : "";
    const word = element("button", {type: "button", class: "av-label", "data-vote": place, tabindex: 0});
    word.append(...bothNames(asked[place] ?? text, text));
    const track = element("div", {class: "av-track"});
    const was = before[place];
    if (before.length && was !== null) track.append(bar("av-was", was, share, start));
    else if (!before.length) track.append(element("span", {class: "av-unknown av-blind"}, "?"));
    const value = values[place];
    if (value !== null) track.append(bar("av-is av-told", value, share, start));
    const end = endOf(value, was);
    if (value === null) track.append(after("blocked", end, share, start));
    else if (written.length) track.append(after(written[place] ?? "", end, share, start));
    else track.append(after(weightText(value), end, share, start));
    if (before.length) {
      // What a text doesn't have has no number in it, not 0.
      const old = after(was === null ? "not there" : weightText(was), was ?? 0, share, start);
      old.className = "av-value av-blind";
      track.append(old);
    }
    if (said) track.append(element("span", {class: "av-you"}, "you said"));
    list.append(element("div", {class: `av-row ${marks.join(" ")}${said}`}, word, track));
  });
  if (cuts.includes(tokens.length)) list.append(leftOut());
  return list;
}

/** A word; where another stands in its place after a change, first the one and then the other.
 * @param {string} before @param {string} now */
function bothNames(before, now) {
  if (before === now) return [element("bdi", {}, now)];
  return [element("bdi", {class: "av-blind"}, before), element("bdi", {class: "av-told"}, now)];
}

/** @param {string} name @param {number} value @param {(value: number) => number} share
 * @param {(value: number) => number} start */
function bar(name, value, share, start) {
  const node = element("i", {class: `av-bar ${name}`});
  node.style.left = `calc(${start(value)} * var(--full) / 100)`;
  node.style.width = `calc(${share(value)} * var(--full) / 100)`;
  return node;
}

/** Where a number stands: past its bar and past the frame of what it was before, which would run through it.
 * @param {number | null} value @param {number | null | undefined} was */
export function endOf(value, was) {
  return Math.max(value ?? 0, was ?? 0, 0);
}

/** The number behind a bar.
 * @param {string} text @param {number} value @param {(value: number) => number} share
 * @param {(value: number) => number} start */
function after(text, value, share, start) {
  const node = element("span", {class: "av-value av-told"}, text);
  node.style.left = `calc(${start(value) + share(value)} * var(--full) / 100 + 16px)`;
  return node;
}

function leftOut() {
  return element(
    "div",
    {class: "av-row av-left-out", "aria-hidden": "true"},
    element("span", {class: "av-label"}, "⋮"),
  );
}
