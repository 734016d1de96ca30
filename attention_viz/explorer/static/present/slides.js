// What is shown in front of a room: the slides, the step of each, and what the keys do; nothing of the page.

import {arrowStep} from "../parts/element.js";

/** @typedef {[text: string, role: string]} Words  a part of a sentence and its role: query, key, number, small, formula or
 * none */

/** One row of numbers over words, as Python's `Picture` tells it.
 * @typedef {object} Row
 * @property {"line" | "bars"} form
 * @property {string[]} tokens
 * @property {boolean[]} dim
 * @property {(number | null)[]} values  null where the query may not look
 * @property {(number | null)[]} before  what the numbers were before a change; empty where there was none
 * @property {number | null} query
 * @property {number | null} key
 * @property {number[]} cuts  the places before which words are left out
 * @property {string} unit
 * @property {string[]} written  what stands behind each bar in place of its number; empty where the number does
 * @property {boolean} neutral  whether the names are no words of the text
 * @property {string[]} asked  what each word is while `before` is shown; empty where it is the same */

/** @import {Given} from "./given.js"
 * @import {Shown} from "./shown.js" */

/** One slide: the question with the picture blind, then the answer in the same place.
 * @typedef {object} Slide
 * @property {Words[]} ask
 * @property {Words[]} tell
 * @property {Row | null} picture
 * @property {string} source
 * @property {Given[]} given
 * @property {Shown | null} shown  the picture that was read, beside the bars
 * @property {string[]} formulas  MathML, seen with the answer
 * @property {number | null} figure  its place among the figures that came with the slides */

/** @typedef {{at: number, step: number}} Place  the slide, from 0; 0 asks, 1 answers */

/** @typedef {"on" | "back" | "first" | "last" | "blank" | "help" | "leave" | number} Act */

/** @type {Record<string, Act>} */
const ACTS = {
  PageDown: "on",
  " ": "on",
  PageUp: "back",
  Backspace: "back",
  Home: "first",
  End: "last",
  b: "blank",
  B: "blank",
  ".": "blank",
  "?": "help",
  Escape: "leave",
};

// In place of slides, where there are none.
/** @type {Slide} */
const NOTHING = {
  ask: [["Nothing to present: this page shows no link between words.", ""]],
  tell: [["Nothing to present: this page shows no link between words.", ""]],
  picture: null,
  source: "",
  given: [],
  shown: null,
  formulas: [],
  figure: null,
};

/** The slides, or one that says there are none. @param {Slide[] | undefined} slides */
export function slidesOrNone(slides) {
  return slides?.length ? slides : [NOTHING];
}

/** What a key does: an act, or the number of a slide from 0. @param {string} key @returns {Act | null} */
export function actOf(key) {
  if (/^[1-9]$/.test(key)) return Number(key) - 1;
  const [down, across] = arrowStep(key) ?? [0, 0];
  if (down || across) return down + across > 0 ? "on" : "back";
  return Object.hasOwn(ACTS, key) ? ACTS[key] : null;
}

/** Where an act leads; the same place where there is nothing further.
 * @param {Place} place @param {Act} act @param {number} count @returns {Place} */
export function moved({at, step}, act, count) {
  if (typeof act === "number") return act < count ? {at: act, step: 0} : {at, step};
  if (act === "first") return {at: 0, step: 0};
  if (act === "last") return {at: count - 1, step: 0};
  const by = act === "on" ? 1 : act === "back" ? -1 : 0;
  const next = Math.min(Math.max(at * 2 + step + by, 0), count * 2 - 1);
  return {at: next >> 1, step: next & 1};
}

/** Whether an act leads past an end, where other slides may follow: 1 after the last, −1 before the first, else 0.
 * @param {Place} place @param {Act} act @param {number} count */
export function pastEnd({at, step}, act, count) {
  if (act === "on" && at === count - 1 && step === 1) return 1;
  return act === "back" && at === 0 && step === 0 ? -1 : 0;
}

/** A place as the address keeps it: slide and step from 1. @param {Place} place */
export function written({at, step}) {
  return `${at + 1}.${step + 1}`;
}

/** The place that an address asks for, as far in as there are slides; null where it asks for none.
 * @param {string | null} text @param {number} count @returns {Place | null} */
export function readPlace(text, count) {
  const found = /^([1-9]\d{0,2})\.([12])$/.exec(text ?? "");
  if (!found) return null;
  const at = Number(found[1]) - 1;
  return at < count ? {at, step: Number(found[2]) - 1} : {at: count - 1, step: 0};
}
