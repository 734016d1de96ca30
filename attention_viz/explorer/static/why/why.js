// What wrote a number, in a Streamlit page. Called again for new data and for a change of theme.
//
// Which head the page shows, and what the number is without the largest heads, comes through the channel beside it.

import {drawList} from "./heads.js";
import {drawMap} from "./map.js";
import {drawMeaning, drawWords, drawWordsLegend} from "./meaning.js";
import {drawSplit} from "./split.js";
import {drawPhotos} from "./photo.js";
import {drawStory} from "./story.js";
import {drawSum} from "./sum.js";
import {begun, mainPart, plainNumber, signed, spokenAt, timesAsLikely, writtenByHeads} from "./reading.js";
import {hearLatest, mountComponent, sendChoice, takesChoice} from "../hosts/component.js";
import {isEmbedded} from "../hosts/hosting.js";
import {readPayload} from "../data/payload.js";
import {element, focused} from "../parts/element.js";

/** @import {PreparedPair} from "./exchange.js"
 * @import {Mounted} from "../hosts/component.js"
 * @import {Message, Mounting} from "../hosts/hosting.js"
 * @import {Place, WhyView} from "./map.js"
 * @import {WhyHeader} from "./reading.js"
 * @import {StoryPress} from "./story.js"
 * @import {SplitHeader} from "./verdict.js" */

/** `by` says what heads are coloured and ordered by. `silenced` holds what the number called `of` is without each of
 * some heads: layer, head and number; `put` what it is with each head's output from the text called `other`. `writes`
 * holds the words that the head writes for, and those against.
 * @typedef {Message & {by?: "wrote" | "silenced" | "put", of?: string, other?: string, put?: [number, number, number][], silenced?: [number, number, number][], writes?: [string[], string[]], words?: [string, number, number][], refused?: string, prepared?: PreparedPair[]}} WhyMessage */

/** What is known of a score that no head wrote, beside its header, and what the reader does with it.
 * @typedef {{compared: number | null, isSorted: boolean, words: [string, number, number][] | null, refused: string, asked: string, typed: string, prepared: PreparedPair[] | null}} SplitState */

/** A number on the page: `of` names what `silenced` is of, `other` the text that `put` is from; `writes` has each
 * head's words as far as they have come.
 * @typedef {Mounted & {header: WhyHeader | null, chosen: Place | null, open: Set<string>, by: "wrote" | "silenced" | "put", other: string, put: Map<string, number>, of: string, silenced: Map<string, number>, writes: Map<string, [string[], string[]]>, split: SplitState}} Why */

/** @param {Mounting} mounting */
export default function whyComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-why",
    /** @returns {Why} */
    create: (base) => ({
      ...{...base, header: null, chosen: null, by: "wrote", of: "", other: "", open: new Set(["words"])},
      ...{silenced: new Map(), put: new Map(), writes: new Map(), split: newSplit()},
    }),
    load(why, bytes) {
      why.header = bytes.length ? readPayload(bytes).header : null;
      drawAgain(why);
    },
    draw: drawAgain,
    hear(why, message) {
      takeMessage(why, message);
      drawWhy(why);
    },
  });
}

/** @returns {SplitState} */
function newSplit() {
  return {compared: null, isSorted: false, words: null, refused: "", asked: "", typed: "", prepared: null};
}

/** Draw with what came before this element was there. @param {Why} why */
function drawAgain(why) {
  for (const subject of ["", "silenced", "put", "writes", "exchanged", "prepared"])
    hearLatest(why, takeMessage, subject);
  drawWhy(why);
}

/** @param {Why} why @param {WhyMessage} message */
function takeMessage(why, message) {
  const {layer, head, by, of, other, silenced, put, writes, words, refused, prepared} = message;
  if (takesChoice(why, message)) why.chosen = [layer, head];
  why.by = by ?? why.by;
  if (of !== undefined && of !== why.of) {
    why.of = of;
    Object.assign(why, {silenced: new Map(), put: new Map(), writes: new Map(), split: newSplit()});
  }
  if (words) Object.assign(why.split, {words, refused: refused ?? "", asked: ""});
  if (prepared) why.split.prepared = prepared;
  if (other !== undefined && other !== why.other) Object.assign(why, {other, put: new Map()});
  for (const [inLayer, one, number] of put ?? []) why.put.set(`${inLayer} ${one}`, number);
  if (writes) why.writes.set(`${layer} ${head}`, writes);
  for (const [inLayer, one, number] of silenced ?? []) why.silenced.set(`${inLayer} ${one}`, number);
}

/** @param {Why} why */
function drawWhy(why) {
  const {header, chosen, root} = why;
  if (!header || !chosen) return;
  if (header.split) {
    drawFirst(why, header, header.split);
    return;
  }
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
    : scoreTitle(header);
  const told = header.less
    ? `${header.more} has ${plainNumber(header.total)} more than ${header.less} in logits, the numbers before the softmax: ${timesAsLikely(header.total)}.`
    : `${writtenByHeads(header)}.`;
  root.replaceChildren(
    element("h1", {class: "av-question"}, ...title, " ", element("small", {}, told)),
    element(
      "div",
      {class: "av-why-read"},
      ...drawPhotos(header, place),
      element(
        "div",
        {},
        drawWords(header, place),
        drawWordsLegend(header, place),
        ...drawStory(header, silenced, (press) => pressStep(why, press), !isEmbedded(root)),
      ),
    ),
    element(
      "div",
      {class: "av-three"},
      drawSum(header, why.open, toggle, choose),
      ...drawHeads(header, {chosen: place, by: why.by, runs: !isEmbedded(root), after, writes}, choose),
    ),
  );
  showLooked(root, header, place);
  if (held) /** @type {HTMLElement | null} */ (root.querySelector(held))?.focus();
}

/** The answer for a score: what carries it. @param {WhyHeader} header @returns {(string | Node)[]} */
function scoreTitle(header) {
  const {pair, total, more} = header;
  const named = pair
    ? [
        element("span", {class: "av-query"}, begun(spokenAt(header, "query", pair[1]))),
        " → ",
        element("span", {class: "av-keys"}, spokenAt(header, "key", pair[2])),
      ]
    : [more];
  const part = mainPart(header);
  const answer = part ? `; largest part: ${part.words}, ${signed(part.sum)}` : "";
  return [...named, ` scores ${plainNumber(total)}${answer}`];
}

/** A score that no head wrote. @param {Why} why @param {WhyHeader} header @param {SplitHeader} split */
function drawFirst(why, header, split) {
  const {root} = why;
  // What was told of another number isn't of this one.
  const state = why.of === header.name || why.of === "" ? why.split : newSplit();
  if (why.of !== header.name) Object.assign(why, {of: header.name, split: state});
  const set = (/** @type {Partial<SplitState>} */ change) => {
    Object.assign(why.split, change);
    drawWhy(why);
  };
  const put = (/** @type {string} */ word) => {
    set({asked: word, typed: ""});
    why.setTriggerValue("word", word);
  };
  const [held, scrolled] = [nameOf(focused(root)), root.querySelector(".av-split-keys")?.scrollTop];
  const compare = (/** @type {number | null} */ compared) => set({compared});
  const type = (/** @type {string} */ typed) => void (why.split.typed = typed);
  const open = (/** @type {StoryPress} */ press) => pressStep(why, press);
  const view = {...state, compare, put, type, open, sort: () => set({isSorted: !why.split.isSorted})};
  root.replaceChildren(...drawSplit(header, split, view));
  const list = root.querySelector(".av-split-keys");
  const chosen = /** @type {HTMLElement | null} */ (list?.querySelector("[aria-current]") ?? null);
  if (list && chosen) list.scrollTop = scrolled ?? chosen.offsetTop - list.clientHeight / 2;
  if (held) /** @type {HTMLElement | null} */ (root.querySelector(held))?.focus();
}

/** Of a long text the line turns to the word that the head took most from.
 * @param {HTMLElement} root @param {WhyHeader} header @param {Place} place */
function showLooked(root, {sources}, place) {
  const line = /** @type {HTMLElement} */ (root.querySelector(".av-sentence"));
  // Where the line goes on, it fades out.
  const fade = () => {
    line.classList.toggle("av-goes-before", line.scrollLeft > 1);
    line.classList.toggle("av-goes-after", line.scrollLeft + line.clientWidth < line.scrollWidth - 1);
  };
  line.onscroll = fade;
  const most = [...(sources[place.join(" ")] ?? [])].sort((one, other) => Math.abs(other[2]) - Math.abs(one[2]))[0];
  const found = line.querySelector(`[data-at="${most?.[0] ?? 0}"]`) ?? line.querySelector('[data-at="image"]');
  const word = /** @type {HTMLElement | null} */ (found);
  if (word) line.scrollLeft = word.offsetLeft - line.offsetLeft - line.clientWidth / 2;
  fade();
}

/** @param {WhyHeader} header @param {WhyView} view @param {(head: Place) => void} choose */
function drawHeads(header, view, choose) {
  const middle = element("div", {}, drawMap(header, view, choose), drawMeaning(header, view));
  return [middle, drawList(header, view, choose)];
}

/** How an element that is drawn anew is found again; empty where it can't be. @param {Element | null} node */
function nameOf(node) {
  if (!(node instanceof HTMLElement)) return "";
  if (node instanceof HTMLInputElement) return "input";
  if (node.classList.contains("av-spot")) return '.av-spot[aria-selected="true"]';
  const named = ["part", "head", "step", "key"].find((name) => node.dataset[name] !== undefined);
  return named ? `${node.tagName}[data-${named}="${CSS.escape(String(node.dataset[named]))}"]` : "";
}

/** @param {Why} why @param {Place} head */
function chooseHead(why, head) {
  why.chosen = head;
  drawWhy(why);
  sendChoice(why, {layer: head[0], head: head[1]});
}

/** A head is chosen here; another number is opened by the page. @param {Why} why @param {StoryPress} press */
function pressStep(why, press) {
  if ("head" in press) chooseHead(why, press.head);
  else why.setTriggerValue("open", press);
}
