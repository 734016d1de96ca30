// What wrote a number, in a Streamlit page. Called again for new data and for a change of theme.
//
// Which head the page shows, and what the number is without the largest heads, comes through the channel beside it.

import {drawList} from "./heads.js";
import {drawMap} from "./map.js";
import {drawMeaning, drawWords} from "./meaning.js";
import {drawStory} from "./story.js";
import {drawSum} from "./sum.js";
import {plainNumber} from "./reading.js";
import {readPayload} from "../data/payload.js";
import {isMeant, latestFor, listenToChannel, sameBytes, themeOf} from "../hosts/hosting.js";
import {element, focused} from "../parts/element.js";

/**
 * @import {Message, Mounting} from "../hosts/hosting.js"
 * @import {Place, WhyView} from "./map.js"
 * @import {WhyHeader} from "./reading.js"
 * @import {StoryPress} from "./story.js"
 */

/**
 * `by` says what heads are coloured and ordered by. `silenced` holds what the number called `of` is without each of some
 * heads: layer, head and number; `put` what it is with each head's output from the text called `other`. `writes` holds the words that the head writes for, and those against.
 * @typedef {Message & {by?: "wrote" | "silenced" | "put", of?: string, other?: string, put?: [number, number, number][], silenced?: [number, number, number][],
 *   writes?: [string[], string[]]}} WhyMessage
 */

/**
 * @typedef {object} Why
 * @property {HTMLElement} root
 * @property {HTMLElement} parentElement
 * @property {Uint8Array | null} bytes
 * @property {WhyHeader | null} header
 * @property {Place | null} chosen
 * @property {number} serial
 * @property {Set<string>} open
 * @property {"wrote" | "silenced" | "put"} by
 * @property {string} other  the text that `put` is from
 * @property {Map<string, number>} put
 * @property {string} of  the number that `silenced` is of
 * @property {Map<string, number>} silenced
 * @property {Map<string, [string[], string[]]>} writes  of each head, as far as it was told
 * @property {number} leaving
 * @property {AbortController} listening
 * @property {Mounting["setStateValue"]} setStateValue
 * @property {Mounting["setTriggerValue"]} setTriggerValue
 */

// How soon after it was let go an element is looked at, and how often from then on while it is still on the page.
const [FIRST_LOOK, NEXT_LOOK] = [50, 1000];
/** @type {WeakMap<HTMLElement, Why>} */
const shown = new WeakMap();

/** @param {Mounting} mounting */
export default function whyComponent({data, parentElement, setStateValue, setTriggerValue}) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(0);
  const why = shown.get(parentElement) ?? createWhy(parentElement, setStateValue, setTriggerValue);
  clearTimeout(why.leaving);
  Object.assign(why, {setStateValue, setTriggerValue});
  why.root.dataset["theme"] = themeOf(why.root);
  if (!why.bytes || !sameBytes(why.bytes, bytes)) {
    why.bytes = bytes;
    why.header = bytes.length ? readPayload(bytes).header : null;
  }
  // What was told before this element was there.
  for (const subject of [undefined, "silenced", "put", "writes"]) {
    const message = latestFor(parentElement, subject);
    if (message) hearWhy(why, message);
  }
  drawWhy(why);
  return () => leaveWhy(parentElement, why);
}

/**
 * @param {HTMLElement} parentElement
 * @param {Mounting["setStateValue"]} setStateValue
 * @param {Mounting["setTriggerValue"]} setTriggerValue
 * @returns {Why}
 */
function createWhy(parentElement, setStateValue, setTriggerValue) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(".av-why"));
  /** @type {Why} */
  const why = {
    ...{root, parentElement, bytes: null, header: null, chosen: null, serial: 0, by: "wrote", of: "", other: ""},
    ...{
      open: new Set(["words"]),
      silenced: new Map(),
      put: new Map(),
      writes: new Map(),
      leaving: 0,
      listening: new AbortController(),
    },
    ...{setStateValue, setTriggerValue},
  };
  listenToChannel((message) => {
    if (hearWhy(why, message)) drawWhy(why);
  }, why.listening.signal);
  shown.set(parentElement, why);
  return why;
}

/**
 * @param {Why} why
 * @param {WhyMessage} message
 */
function hearWhy(why, message) {
  if (!isMeant(why.parentElement, message)) return false;
  const {layer, head, seen = 0, by, of, other, silenced, put, writes} = message;
  if (!why.chosen || seen >= why.serial) why.chosen = [layer, head];
  why.by = by ?? why.by;
  if (of !== undefined && of !== why.of) {
    why.of = of;
    Object.assign(why, {silenced: new Map(), put: new Map(), writes: new Map()});
  }
  if (other !== undefined && other !== why.other) Object.assign(why, {other, put: new Map()});
  for (const [inLayer, one, number] of put ?? []) why.put.set(`${inLayer} ${one}`, number);
  if (writes) why.writes.set(`${layer} ${head}`, writes);
  for (const [inLayer, one, number] of silenced ?? []) why.silenced.set(`${inLayer} ${one}`, number);
  return true;
}

/** @param {Why} why */
function drawWhy(why) {
  const {header, chosen, root} = why;
  if (!header || !chosen) return;
  const place = /** @type {Place} */ (
    header.map[chosen[0]]?.[chosen[1]] === undefined ? (header.listed[0] ?? [0, 0]) : chosen
  );
  // What is told of another number is kept for it, and never shown with this one.
  const isOfThis = why.of === header.name;
  const [silenced, put, writes] = isOfThis ? [why.silenced, why.put, why.writes] : [new Map(), new Map(), new Map()];
  const after = why.by === "put" ? put : silenced;
  const choose = (/** @type {Place} */ head) => chooseHead(why, head);
  const toggle = (/** @type {string} */ name) => {
    if (!why.open.delete(name)) why.open.add(name);
    drawWhy(why);
  };
  const held = nameOf(focused(root));
  const title = header.less
    ? [
        "Why ",
        element("span", {class: "av-more"}, header.more),
        " and not ",
        element("span", {class: "av-less"}, header.less),
        "?",
      ]
    : [`Why is ${header.more} worth ${plainNumber(header.total)}?`];
  const told = header.less
    ? `The model gives ${header.more} ${plainNumber(header.total)} more than ${header.less}, in logits.`
    : `The score that the softmax turns into the weight; here: what wrote ${header.side === "query" ? "the query" : "the key"}.`;
  root.replaceChildren(
    element("h1", {class: "av-question"}, ...title, " ", element("small", {}, told)),
    drawWords(header, place),
    ...drawStory(header, silenced, (press) => pressStep(why, press)),
    element(
      "div",
      {class: "av-three"},
      drawSum(header, why.open, toggle, choose),
      ...(header.listed.length ? drawHeads(header, {chosen: place, by: why.by, after, writes}, choose) : [noHeads()]),
    ),
  );
  showLooked(root, header, place);
  if (held) /** @type {HTMLElement | null} */ (root.querySelector(held))?.focus();
}

/**
 * Of a long text the line turns to the word that the head took most from.
 * @param {HTMLElement} root
 * @param {WhyHeader} header
 * @param {Place} place
 */
function showLooked(root, {sources}, place) {
  const line = /** @type {HTMLElement} */ (root.querySelector(".av-sentence"));
  const most = [...(sources[place.join(" ")] ?? [])].sort((one, other) => Math.abs(other[2]) - Math.abs(one[2]))[0];
  const word = /** @type {HTMLElement | undefined} */ (line.children[most?.[0] ?? 0]);
  if (word) line.scrollLeft = word.offsetLeft - line.offsetLeft - line.clientWidth / 2;
}

/**
 * @param {WhyHeader} header
 * @param {WhyView} view
 * @param {(head: Place) => void} choose
 */
function drawHeads(header, view, choose) {
  const middle = element("div", {}, drawMap(header, view, choose), drawMeaning(header, view));
  return [middle, drawList(header, view, choose)];
}

function noHeads() {
  const words = "No head stands before this one: its queries and keys are made of the words and their positions alone.";
  return element("section", {class: "av-meaning"}, element("h3", {}, "No head wrote it"), element("p", {}, words));
}

/**
 * How an element that is drawn anew is found again; empty where it can't be.
 * @param {Element | null} node
 */
function nameOf(node) {
  if (!(node instanceof HTMLElement)) return "";
  if (node.classList.contains("av-spot")) return '.av-spot[aria-selected="true"]';
  const named = ["part", "head", "step"].find((name) => node.dataset[name] !== undefined);
  return named ? `${node.tagName}[data-${named}="${CSS.escape(String(node.dataset[named]))}"]` : "";
}

/**
 * @param {Why} why
 * @param {Place} head
 */
function chooseHead(why, head) {
  why.serial += 1;
  why.chosen = head;
  drawWhy(why);
  why.setStateValue("choice", {layer: head[0], head: head[1], serial: why.serial});
}

/**
 * A head is chosen here; another number is opened by the page.
 * @param {Why} why
 * @param {StoryPress} press
 */
function pressStep(why, press) {
  if ("head" in press) chooseHead(why, press.head);
  else why.setTriggerValue("open", press);
}

/**
 * Streamlit lets go of an element for a moment now and then: it is looked at a little later.
 * @param {HTMLElement} parentElement
 * @param {Why} why
 * @param {number} wait
 */
function leaveWhy(parentElement, why, wait = FIRST_LOOK) {
  clearTimeout(why.leaving);
  why.leaving = window.setTimeout(() => {
    if (parentElement.isConnected) {
      leaveWhy(parentElement, why, NEXT_LOOK);
      return;
    }
    why.listening.abort();
    shown.delete(parentElement);
  }, wait);
}
