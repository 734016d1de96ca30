// What a cell of the atlas stands for, in numbers and words.

import {weightText} from "../data/scale.js";
import {roleOf, wordingOf} from "./roles.js";

/** @import {AtlasCell, Drawing, Metric} from "./grid.js" */

const FEW = 5;

/** The number that colours a head. @param {Drawing} drawing @param {AtlasCell} cell */
export function colouringNumber({header, message, effects}, {place}) {
  return message.view === "silenced" ? (effects[place] ?? null) : header.numbers[message.metric][place];
}

/** What stands for the deepest colour: of the metric, or of what was worked out by silencing.
 * @param {Drawing} drawing */
export function fullOf({header, message, effects}) {
  if (message.view !== "silenced") return header.fulls[message.metric];
  return Math.max(1e-9, ...effects.map((effect) => effect ?? 0));
}

/** What a cell shows, for those who can't see it. @param {Drawing} drawing @param {AtlasCell} cell */
export function wordsOf(drawing, cell) {
  const {header, message} = drawing;
  if (message.view === "roles") {
    const score = header.score[cell.place];
    return `${wordingOf(roleOf(header, cell), cell)[0]}${score === null ? "" : `: ${weightText(score)}`}`;
  }
  const number = colouringNumber(drawing, cell);
  if (message.view === "silenced") {
    return number === null ? "not tested" : `without it, the output moves by ${(100 * number).toFixed(2)} %`;
  }
  const counted = header.counts[message.metric][cell.place];
  const few = number !== null && isFew(counted) ? `, the mean of only ${tokensOf(counted)}` : "";
  const metric = header.metrics.find(({name}) => name === message.metric);
  const label = metric ? labelOf(metric, cell) : message.metric;
  return `${label}: ${number === null ? "nothing to count" : number.toFixed(3).replace("-", "\u2212")}${few}`;
}

/** What a metric is called for a head: without a softmax it is of shares of size.
 * @param {Metric} metric @param {AtlasCell} cell */
export function labelOf({label, mixed}, cell) {
  return (cell.of.kind && mixed) || label;
}

/** Whether what colours the heads can be below 0. @param {Drawing} drawing */
export function isSigned({header, message}) {
  return message.view === "colours" && header.metrics.some(({name, signed}) => name === message.metric && signed);
}

/** A number as it stands in a cell. @param {number} number */
export function shortNumber(number) {
  const size = Math.abs(number);
  if (size < 10) return weightText(number);
  return (size < 1000 ? number.toFixed(1) : number.toExponential(0)).replace("-", "\u2212");
}

/** Whether a mean stands on so few tokens that it says little; as in Python's head_table.
 * @param {number | undefined} tokens */
export function isFew(tokens) {
  return tokens !== undefined && tokens < FEW;
}

/** @param {number} tokens */
export function tokensOf(tokens) {
  return tokens === 1 ? "1 token" : `${tokens} tokens`;
}

/** A share in hundredths, with as many digits as say something. @param {number} share */
export function percent(share) {
  return `${100 * share < 9.95 ? (100 * share).toFixed(1) : (100 * share).toFixed(0)}%`;
}
