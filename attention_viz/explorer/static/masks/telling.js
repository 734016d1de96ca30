// What the mask did, in a sentence.

import {countCut, lengths, wordless} from "./board.js";
import {heaviestCut, largestOf} from "./rules.js";
import {significant} from "../data/mixing.js";
import {weightText} from "../data/scale.js";
import {element} from "../parts/element.js";
import {tokenParts} from "../claim/placed.js";

/** @import {BoardAxis, Ground, Matrices, Run} from "./board.js" */

// A smaller weight is none: it is written as less than 0.01.
const LEAST_CUT = 0.005;
// A prediction that changed by so much is told instead of an output.
const DRAMA = 0.2;

/** What the chosen link became, where one was chosen; else the heaviest link that was cut. Then what its query turns to,
 * and how far that word's output moved; what isn't known yet is left out.
 * @param {Ground} ground @param {Matrices} matrices @param {Run | null} run
 * @param {boolean} none  whether no mask is put on
 * @param {{query: number, key: number} | null} pair  the link that was chosen
 * @returns {(Node | string)[]} */
export function claimOf(ground, matrices, run, none, pair = null) {
  const {header} = ground;
  if (none && header.mixed) return ["No mask: every cell is as the layer computed it."];
  if (none) return ["No mask: every position can look wherever the model allows."];
  if (!countCut(matrices)) return [...nothingCut(ground, matrices, run)];
  const chosen = chosenCut(ground, matrices, pair);
  if (pair && !chosen) {
    const cut = cutOf(ground, matrices);
    const lost = cut ? [" Elsewhere, ", ...(header.mixed ? lostParts : cutParts)(ground, cut, matrices), "."] : [];
    return [...pointedClaim(ground, matrices, run, none, pair), ".", ...lost];
  }
  const cut = chosen ?? heaviestOf(ground, matrices);
  if (!cut) return ["The blocked cells had no weight."];
  const moved = matrices.after ? (nextParts(run) ?? outputParts(ground, run, cut.query)) : ["."];
  if (header.mixed) return [...capital(lostParts(ground, cut)), ...moved];
  if (!chosen && onlyFillsUp(ground, matrices)) return fillUpParts(ground, run, mostOfWords(ground, matrices));
  return [...capital(cutParts(ground, cut, matrices)), ...moved];
}

/** The heaviest link that was cut, if the sentence names it. @param {Ground} ground @param {Matrices} matrices */
export function cutOf(ground, matrices) {
  return countCut(matrices) && !onlyFillsUp(ground, matrices) ? heaviestOf(ground, matrices) : null;
}

/** @param {Ground} ground @param {Matrices} matrices */
function heaviestOf(ground, {before, open}) {
  return heaviestCut(before, open, ground.columns, wordless(ground));
}

/** Whether words lost next to nothing, and tokens that only fill up the row did.
 * @param {Ground} ground @param {Matrices} matrices */
function onlyFillsUp(ground, matrices) {
  const {mixed, queries} = ground.header;
  return !mixed && queries.padding.length > 0 && mostOfWords(ground, matrices) < LEAST_CUT;
}

/** What is said of the cell that is pointed at: what was cut there, or its weight as it was and with the mask.
 * @param {Ground} ground @param {Matrices} matrices @param {Run | null} run @param {boolean} none
 * @param {{query: number, key: number}} cell @returns {(Node | string)[]} */
export function pointedClaim(ground, matrices, run, none, cell) {
  const {header, columns} = ground;
  const {own, open, before, after} = matrices;
  const at = cell.query * columns + cell.key;
  if (own[at] && !open[at] && before[at] !== 0) return claimOf(ground, matrices, run, none, cell);
  const [query, key] = [token(header.queries, cell.query, "av-query"), token(header.keys, cell.key, "av-keys")];
  const [one, other] = header.mixed ? [key, query] : [query, key];
  const [does, can] =
    header.mixed === "arrived"
      ? ["arrives at", "arrive at"]
      : header.mixed
        ? ["reaches", "reach"]
        : ["looks at", "look at"];
  if (!own[at]) return [...capital(one), ` can\u2019t ${can} `, ...other, ": the model blocks it."];
  const written = header.mixed === "arrived" ? significant : weightText;
  const [was, is] = [before, after].map((matrix) => (matrix ? written(matrix[at]) : null));
  const amount = (/** @type {string | null} */ text) => element("strong", {class: "av-claim-number"}, text ?? "");
  const then = none || is === was ? [] : is === null ? ["; with the mask \u2026"] : ["; with the mask ", amount(is)];
  return [...capital(one), ` ${does} `, ...other, ": ", amount(was), ...then];
}

/** The chosen link with what was cut of it; null where nothing was.
 * @param {Ground} ground @param {Matrices} matrices @param {{query: number, key: number} | null} pair */
function chosenCut({columns}, {before, open}, pair) {
  if (!pair) return null;
  const at = pair.query * columns + pair.key;
  return !open[at] && before[at] !== 0 ? {...pair, weight: before[at]} : null;
}

/** The largest weight that a word lost; of the tokens that only fill up the row, none counts.
 * @param {Ground} ground @param {Matrices} matrices */
function mostOfWords({header: {queries}, columns}, {before, open}) {
  const padding = new Set(queries.padding);
  const lost = before.map((weight, at) => (open[at] || padding.has(Math.floor(at / columns)) ? 0 : Math.abs(weight)));
  return lost.reduce((most, weight) => Math.max(most, weight), 0);
}

/** What is left to be said where words lost next to nothing in this head: other heads may move them.
 * @param {Ground} ground @param {Run | null} run @param {number} lost  at most by a word */
function fillUpParts({header}, run, lost) {
  const here = lost
    ? "words gave each blocked cell less than 0.01"
    : "only padding tokens attended to the blocked cells";
  if (!run) return [`In this head ${here}; running the model for the others \u2026`];
  const padding = new Set(header.queries.padding);
  const words = run.outputs.map((moved, at) => (padding.has(at) ? 0 : moved));
  const most = Math.max(...words);
  if (most === 0) return [`This sentence is unaffected: ${here}.`];
  const said = token(header.queries, words.indexOf(most), "av-query");
  return [`In this head ${here}; the output moves most at `, ...said, ", by ", ...distance(most), "."];
}

/** @param {Ground} ground @param {{query: number, key: number, weight: number}} cut @param {Matrices} matrices
 * @returns {[string, ...(Node | string)[]]} */
function cutParts({header, columns}, {query, key, weight}, {open, before, after}) {
  const from = token(header.queries, query, "av-query");
  const to = (/** @type {number} */ at) => token(header.keys, at, "av-keys");
  /** @type {[string, ...(Node | string)[]]} */
  const lost = [...from, " loses ", ...to(key), " (", number(weight), ")"];
  if (!open.subarray(query * columns, (query + 1) * columns).includes(1)) return [...lost, " and can look nowhere"];
  if (!after) return lost;
  const [was, is] = [before, after].map((matrix) => largestOf(matrix, query, columns));
  const more = was === is ? " and looks more at " : " and turns to ";
  return [...lost, more, ...to(is), " (", number(after[query * columns + is]), ")"];
}

/** What no longer arrives, where there is no softmax: nothing is shared out again.
 * @param {Ground} ground @param {{query: number, key: number, weight: number}} cut
 * @returns {[string, ...(Node | string)[]]} */
function lostParts({header}, {query, key, weight}) {
  const written = header.mixed === "arrived" ? significant : weightText;
  const what = element("strong", {class: "av-claim-number"}, written(weight));
  const from = token(header.keys, key, "av-keys");
  return [
    ...from,
    header.mixed === "arrived"
      ? " no longer arrives at "
      : weight < 0
        ? " is no longer taken from "
        : " no longer reaches ",
    ...[...token(header.queries, query, "av-query"), " (", what, "); the other cells stay"],
  ];
}

/** The prediction that changed most, where it changed much. @param {Run | null} run */
function nextParts(run) {
  const change = (/** @type {[string, number, number]} */ [, was, is]) => Math.abs(is - was);
  const most = run?.likelier.reduce((one, other) => (change(other) > change(one) ? other : one), run.likelier[0]);
  if (!most || change(most) < DRAMA) return null;
  const [word, before, after] = most;
  const shown = element("bdi", {}, `\u201c${bare(word)}\u201d`);
  const goes = after < before ? " falls from " : " rises from ";
  return ["; the prediction ", shown, goes, number(before), " to ", number(after), "."];
}

/** A token without the mark of the space before it. @param {string} written */
function bare(written) {
  return written.replace(/^\u00b7(?=.)/u, "");
}

/** @param {Ground} ground @param {Run | null} run @param {number} query */
function outputParts({header}, run, query) {
  if (!run) return ["; running the model for its output \u2026"];
  // Of a model with two texts, what comes out stands beside the other one.
  if (run.said.length !== header.queries.tokens.length || run.said[query] !== header.queries.tokens[query])
    return ["."];
  // Two words stand before it where nothing is shared out again.
  const whose = header.mixed ? ["; the output at ", ...token(header.queries, query, "av-query")] : ["; its output"];
  return [...whose, " moves by ", ...distance(run.outputs[query]), "."];
}

/** @param {Ground} ground @param {Matrices} matrices @param {Run | null} run */
function nothingCut({header}, matrices, run) {
  const most = run ? Math.max(...run.outputs) : 0;
  if (run && most > 0) {
    const at = run.outputs.indexOf(most);
    const own = header.queries.tokens[at] === run.said[at];
    const said = token(own ? header.queries : {tokens: run.said}, at, "av-query");
    return ["Nothing is blocked in this head; the output moves most at ", ...said, ", by ", ...distance(most), "."];
  }
  if (!run) return ["Nothing is blocked in this head; running the model for the others \u2026"];
  if (matrices.own.includes(0)) return ["The model already blocks all these cells, so the mask changes nothing here."];
  if (header.mixed) return ["Nothing is blocked."];
  return ["Nothing is blocked: every position can look at every position."];
}

/** A token in a sentence: a patch by its place, a special token without quotes. @param {Pick<BoardAxis, "tokens" | "placed"> & {special?: number[]}} axis @param {number} at @param {string} role
 * @returns {[string, HTMLElement]} */
function token({tokens, placed, special}, at, role) {
  return tokenParts(tokens[at], special?.includes(at) ? tokens[at] : placed?.[at], role);
}

/** Words that begin a sentence. @param {[string, ...(Node | string)[]]} parts @returns {(Node | string)[]} */
function capital([which, ...shown]) {
  return [which.slice(0, 1).toUpperCase() + which.slice(1), ...shown];
}

/** How far an output moved, with what it is measured by. @param {number} share */
function distance(share) {
  const [amount, times] = lengths(share).split(/(?= \u00d7)/u);
  return [element("strong", {class: "av-claim-number"}, amount), times ? `${times} its norm` : " of its norm"];
}

/** @param {number} weight */
function number(weight) {
  return element("strong", {class: "av-claim-number"}, weightText(weight));
}
