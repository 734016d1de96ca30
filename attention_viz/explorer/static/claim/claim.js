// What the picture says, in a sentence.

import {asideOf, isOfAllRows, ofPieces} from "./aside.js";
import {element} from "../parts/element.js";
import {tokenParts} from "./placed.js";
import {Head} from "../data/head.js";
import {findingAt} from "../data/pair.js";
import {MixedHead, shareOfSize, significant} from "../data/mixing.js";
import {weightText} from "../data/scale.js";
import {UNKNOWN_WORDS} from "../data/spelling.js";
import {placeInWords} from "../data/tokens.js";
import {isInSight, liftNumber} from "../hosts/travel.js";

/** @import {Part, View} from "../parts/view.js"
 * @import {Places} from "../data/head.js"
 * @import {PackedFinding} from "../data/payload.js"
 * @import {Axis} from "../data/tokens.js" */

/** @typedef {Pick<View, "root" | "store" | "recording" | "now" | "open" | "told">} ClaimView */

// What the number is that a head writes.
const EFFECT =
  "The head\u2019s direct effect on the first word\u2019s logit minus the second\u2019s, with norms and attention held fixed";
// A number with two digits is as far from its weight at most.
const ROUNDED = 0.0055;

/** The sentence, large, and beside it where it is seen. @param {ClaimView} view @returns {Part} */
export function createClaim(view) {
  // On a page with a heading of its own, the sentence comes below that.
  const level = document.querySelector("h1") ? "h2" : "h1";
  const sentence = element(level, {class: "av-claim", "data-testid": "explorer-sentence"});
  const aside = element("span", {class: "av-aside", "data-testid": "explorer-aside"});
  const place = element("span", {class: "av-where"});
  const how = element("button", {type: "button", class: "av-how", "data-testid": "explorer-how"});
  how.onclick = () => {
    lift(view, sentence);
    view.open?.("steps");
  };
  const why = element("button", {type: "button", class: "av-how", "data-testid": "explorer-why"}, "Why?");
  why.onclick = () => view.open?.("why");
  const hint = element("span", {class: "av-quiet", hidden: true}, "preview: click to keep it");
  const node = element("div", {class: "av-claim-line"}, sentence, aside, place, ...(view.open ? [how, why] : []), hint);
  const rows = keepRows(node);
  return {
    node,
    draw() {
      rows.before(isPointedAt(view), JSON.stringify([view.now.stream.name, view.now.at, view.now.pair]));
      sentence.replaceChildren(...sentenceOf(view));
      const {words, weight} = besideOf(view);
      aside.textContent = words;
      aside.title = words.includes(" over ") ? EFFECT : "";
      aside.hidden = aside.textContent === "";
      place.textContent = whereOf(view);
      const number = sentence.querySelector(".av-claim-number")?.textContent ?? "";
      how.textContent = `How was ${weight ? `the weight ${weight}` : number} computed?`;
      const previewing = view.store.state.preview !== null;
      how.hidden = previewing || !isOfPair(view.now, weight || number);
      // A reading's shares aren't made of one head's scores.
      why.hidden = how.hidden || Boolean(view.recording.header.reading) || Boolean(view.now.stream.signed);
      hint.hidden = !previewing;
      // What the page has beside the explorer is of the chosen head: it steps back meanwhile.
      const {host} = /** @type {Partial<ShadowRoot>} */ (node.getRootNode());
      host?.toggleAttribute("data-points", isPointedAt(view));
    },
  };
}

/** Whether a number is the chosen pair's: a count, a sum over a region and a mean over rows aren't.
 * @param {ClaimView["now"]} now @param {string} number */
function isOfPair({head, pair}, number) {
  if (!/[.<]/u.test(number)) return false;
  if (!head || !pair || head instanceof MixedHead) return true;
  const weight = head.at(pair.query, pair.key);
  return !(number.startsWith("<") ? weight >= 0.01 : Math.abs(weight - Number(number)) >= ROUNDED);
}

/** Lift the pair's weight off its cell, or off the sentence if the cell is out of sight.
 * @param {ClaimView} view @param {HTMLElement} sentence */
function lift({root, now: {head, pair}}, sentence) {
  const [cell, number] = [root.querySelector(".av-chosen-cell"), sentence.querySelector(".av-claim-number")];
  const from = isInSight(cell) ? cell : number;
  if (!from || !head || !pair || (head instanceof MixedHead && !head.signed)) return;
  liftNumber(from, {text: weightText(head.at(pair.query, pair.key)), ...pair});
}

/** While something is pointed at, the line may grow, but not shrink: were it one row less, all below would move up,
 * away from the pointer, and with nothing pointed at down again, without end. It keeps its rows until it is for
 * another pair.
 * @param {HTMLElement} node */
function keepRows(node) {
  let kept = "";
  let width = 0;
  let height = 0; // that it keeps, in pixels; 0 while it takes as many rows as its text
  /** @param {number} next */
  const keep = (next) => {
    height = next;
    node.style.minHeight = next ? `${next}px` : "";
  };
  const observer = new ResizeObserver(([entry]) => {
    const [box] = entry.borderBoxSize;
    if (box.inlineSize !== width) keep(0);
    else if (height && box.blockSize > height) keep(box.blockSize);
    width = box.inlineSize;
  });
  observer.observe(node);
  return {
    /** To be called before the line is written. @param {boolean} pointed @param {string} pair */
    before(pointed, pair) {
      if (pointed && height === 0) keep(node.offsetHeight);
      else if (!pointed && pair !== kept) keep(0);
      if (!pointed) kept = pair;
    },
  };
}

/** What stands beside the sentence; of a finding between whole words what the pair that is kept has alone.
 * @param {ClaimView} view @returns {{words: string, weight: string}} */
function besideOf(view) {
  const {recording, now} = view;
  if (now.pair === null || !atRest(view)) return {words: "", weight: ""};
  // A finding without a softmax names a share of size; what Step by step computes is the weight.
  if (now.stream.signed)
    return {words: "", weight: isSignedHead(now.head) ? weightText(now.head.at(now.pair.query, now.pair.key)) : ""};
  const found = findingAt(recording, now.stream.name, now.at, now.pair);
  // Of a mean over rows, what Step by step computes is the weight of the pair that is drawn.
  if (found && isOfAllRows(found)) {
    const drawn = now.head ? weightText(now.head.at(now.pair.query, now.pair.key)) : "";
    return {
      words: [drawnHere(view, now.pair, drawn), asideOf(now, now.pair)].filter(Boolean).join("; "),
      weight: drawn,
    };
  }
  const weight = ofPieces(now, now.pair, found);
  const words =
    weight === null ? asideOf(now, now.pair) : `for whole words; this pair of tokens has ${weightText(weight)}`;
  return {
    words: [effectOf(found), words].filter(Boolean).join("; "),
    weight: weight === null ? "" : weightText(weight),
  };
}

/** @param {ClaimView["now"]["head"]} head @returns {head is MixedHead} */
function isSignedHead(head) {
  return head instanceof MixedHead && head.signed;
}

/** Between which words the effect of a finding decides. @param {PackedFinding | undefined} found */
function effectOf(found) {
  return found?.effect == null ? "" : `“${found.word}” over “${found.rival}”`;
}

/** Which row the arcs are of, where the sentence is about all rows of a head.
 * @param {ClaimView} view @param {{query: number, key: number}} pair @param {string} weight */
function drawnHere({now: {stream}}, {query, key}, weight) {
  return `drawn here: ${stream.queries.names[query]} \u2192 ${stream.keys.names[key]} ${weight}`.trimEnd();
}

/** Whether the sentence is of a head's pair: beside cells that are pointed at nothing may come and go.
 * @param {ClaimView} view */
function atRest(view) {
  return !isOverCell(view) && !view.told?.() && !view.recording.header.reading;
}

/** @param {Pick<View, "store">} view */
function isPointedAt(view) {
  return isOverCell(view) || view.store.state.preview !== null;
}

/** @param {Pick<View, "store">} view */
function isOverCell({store: {state}}) {
  return state.overQuery !== null || state.overKey !== null;
}

/** @param {ClaimView["store"]["state"]} state @param {number} channel */
function channelOf({single, preview}, channel) {
  return single && preview === null ? `channel ${channel}` : "all channels";
}

/** @param {ClaimView} view */
function whereOf({recording, now: {stream, at}, store: {state}}) {
  const {label, number = at.layer} = stream.layers[at.layer];
  const {reading} = recording.header;
  const {kind, per} = stream.layers[at.layer];
  const own = per === "channel" ? channelOf(state, at.head) : `head ${at.head}`;
  const head = reading?.together && !kind ? "all heads together" : own;
  return `layer ${number}${kind ? ` \u00b7 ${kind}` : ""}, ${head}${label === String(number) ? "" : ` (layer ${label} of the model)`}`;
}

/** What the chosen pair, or what is pointed at, says. @param {ClaimView} view @returns {(Node | string)[]} */
function sentenceOf(view) {
  const {head, stream, pair, at} = view.now;
  const pointed = isOverCell(view);
  const told = view.told?.();
  const shown = pointed && !told ? pointedAt(view) : pair;
  if (shown === null) return [];
  const unread = pointed ? null : unreadBy(stream.queries);
  if (unread !== null)
    return [element("span", {class: "av-unread"}, `\u201c${unread}\u201d stands for every word of this text.`)];
  const {query, key} = shown;
  const {reading} = view.recording.header;
  // What was found in a head is known before the head has been read.
  const found = findingAt(view.recording, stream.name, at, shown);
  if (found && !pointed && !reading) return partsOf(found);
  if (told) return partsOf({parts: told});
  if (head === null) return [];
  const [from, to] = [named(stream.queries, query, "av-query"), named(stream.keys, key, "av-keys")];
  if (head instanceof MixedHead) return mixedSentence(head, [query, key], [from, to], view.now.columns);
  if (head.isBlocked(query, key)) {
    const below = head instanceof Head ? head.leftOut(query, key) : null;
    return [capital(from), below === null ? " may not look at " : " didn\u2019t pick ", ...to.nodes];
  }
  const number = element("strong", {class: "av-claim-number"}, weightText(head.at(query, key)));
  if (reading) return [`${reading.label}: share of `, ...from.nodes, "\u2019s row at ", ...to.nodes, ": ", number];
  // A row of another text has the name of the word that comes next.
  if (stream.written) return ["Before ", ...from.nodes, " it attends to ", ...to.nodes, ": ", number];
  if (stream.own && query === key) return [capital(from), " looks at itself: ", number];
  return [capital(from), " looks at ", ...to.nodes, ": ", number];
}

/** The token that stands for every word of a text that the model can't read; null of any other text.
 * @param {Axis} axis */
function unreadBy({labels, words}) {
  const said = labels.filter((_, place) => words[place]);
  return said.length && said.every((label) => UNKNOWN_WORDS.includes(label.toLowerCase())) ? said[0] : null;
}

/** What a value does at a query. @param {MixedHead} head @param {[query: number, key: number]} cell
 * @param {ReturnType<typeof named>[]} names @param {Places} columns @returns {(Node | string)[]} */
function mixedSentence(head, [query, key], [from, to], columns) {
  if (head.isBlocked(query, key)) return ["Nothing of ", ...to.nodes, " can arrive at ", ...from.nodes];
  const weight = head.at(query, key);
  const number = element("strong", {class: "av-claim-number"}, significant(Math.abs(weight)));
  const part = ` (${shareOfSize(head, query, key, columns)})`;
  if (!head.signed) return ["From ", ...to.nodes, " a vector of length ", number, " arrives at ", ...from.nodes, part];
  if (weight < 0) return [capital(from), " has ", number, " of ", ...to.nodes, " taken away", part];
  return [capital(to), " carries ", number, " to ", ...(query === key ? ["itself"] : from.nodes), part];
}

/** The cell under the pointer; of a token in the line, what it looks at most.
 * @param {Pick<ClaimView, "now" | "store">} view */
export function pointedAt({now: {head, rows, columns, stream}, store: {state}}) {
  const {overQuery: query, overKey: key} = state;
  if (head === null || (query === null && key === null)) return null;
  if (query !== null && key !== null && !(stream.own && query === key && state.overLine)) return {query, key};
  if (query !== null) {
    const best = head.strongest(Int32Array.of(query), columns, 1, () => true)[0];
    return best ? {query, key: best.key} : null;
  }
  if (key === null) return null;
  const best = head.strongest(rows, Int32Array.of(key), 1, () => true)[0];
  return best ? {query: best.query, key} : null;
}

/** @param {Pick<PackedFinding, "parts">} finding */
function partsOf({parts}) {
  /** @type {Record<string, string>} */
  const classes = {query: "av-query", key: "av-keys", next: "av-next", number: "av-claim-number"};
  return parts.map(([text, role]) =>
    role === "number" || role === "effect"
      ? element("strong", {class: role === "effect" ? sideOf(text) : classes[role]}, text)
      : classes[role]
        ? element("bdi", {class: classes[role]}, text)
        : text,
  );
}

/** The class of an effect: for a word, or against it. @param {string} text  with its sign */
export function sideOf(text) {
  return text.startsWith("\u2212") ? "av-effect av-less" : "av-effect av-more";
}

/** A token in a sentence: its name in quotes, or its place.
 * @param {Axis} axis @param {number} place @param {string} role */
function named(axis, place, role) {
  const [before, shown] = tokenParts(axis.names[place], placeInWords(axis, place), role);
  return {before, shown, nodes: before ? [before, shown] : [shown]};
}

/** @param {{before: string, shown: HTMLElement}} name */
function capital({before, shown}) {
  const text = `${before.slice(0, 1).toUpperCase()}${before.slice(1)}`;
  return element("span", {}, text, shown);
}
