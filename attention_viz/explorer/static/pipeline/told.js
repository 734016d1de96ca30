// What the lanes of the row say when pointed at: how an entry and a weight come about.

import {reasonOf, stagesTold} from "./chain.js";
import {fateOf, stageText, written} from "./numbers.js";
import {notPicked} from "../data/head.js";
import {partOfSize} from "../data/mixing.js";
import {weightText} from "../data/scale.js";

/** @import {Lane, Opened, Pair} from "./numbers.js"
 * @import {Said} from "./scene.js" */

const REASONS = {
  padding: "it is padding",
  later: "it comes later than the query",
  mask: "a mask blocks it",
};

/** @param {Opened} opened @param {Pair} pair @param {number} key */
function whyNot(opened, pair, key) {
  const reason = reasonOf(opened, pair, key);
  return reason === "left" ? notPicked(-(pair.margins?.[key] ?? NaN)) : `blocked, ${REASONS[reason]}`;
}

/** What the softmax divides by, once the row's largest entry is taken off: of a long text it follows from a weight.
 * @param {Lane[]} lanes */
export function exponentials(lanes) {
  const entries = lanes.filter(({kind}) => kind !== "others");
  const largest = Math.max(...entries.map(({entry}) => entry));
  const heaviest = entries.find(({entry}) => entry === largest);
  return {largest, sum: heaviest && heaviest.weight > 0 ? 1 / heaviest.weight : 0};
}

/** @param {Opened} opened @param {Pair} pair @param {Lane} one @returns {Said[]} */
export function entryTold(opened, pair, one) {
  if (one.kind === "sink")
    return ["sink: one extra, learned entry, ", [written(one.entry), "av-strong"], "; its share goes to no token"];
  if (one.kind === "key" && pair.isSigned && one.entry !== -Infinity) {
    const [, name] = opened.header.mixer?.stages[0] ?? ["", ""];
    return [[one.name, "av-k"], `: ${name.toLowerCase()} `, [stageText(pair, one.entry), "av-strong"]];
  }
  if (one.kind === "others")
    return [`${one.name}: entries from `, [written(one.entry), "av-strong"], " to ", [written(one.most), "av-strong"]];
  if (one.entry === -Infinity)
    return [[one.name, "av-k"], `: ${whyNot(opened, pair, one.key)}: `, ["\u2212\u221e", "av-strong"]];
  return [[one.name, "av-k"], ": enters the softmax as ", [written(one.entry), "av-strong"]];
}

/** What the weights of a row without a softmax sum to, and their sizes. @param {Pair} pair */
export function rowSum({weights}) {
  const [sum, size] = weights.reduce(([all, sizes], one) => [all + one, sizes + Math.abs(one)], [0, 0]);
  return `\u03a3 ${weightText(sum)}, \u03a3|\u00b7| ${weightText(size)}`;
}

/** @param {Opened} opened @param {Pair} pair @param {Lane} one @returns {Said[]} */
export function weightTold(opened, pair, one) {
  if (one.entry === -Infinity) return [`${one.name}: ${fateOf(pair, one.key)}, so its weight is `, ["0", "av-strong"]];
  if (pair.isSigned) {
    const made = one.kind === "key" ? stagesTold(opened, pair, one.key) : "together";
    const part = `, ${partOfSize(one.share)}`;
    return [`${one.name}: ${made}: weight `, [weightText(one.weight), "av-strong"], part];
  }
  if (one.kind === "others") return [`${one.name} together: `, [weightText(one.weight), "av-strong"]];
  const {lanes} = pair;
  const {largest, sum} = exponentials(lanes);
  const power = Math.exp(one.entry - largest);
  return [
    `e^(${written(one.entry)} \u2212 ${written(largest)}) \u00f7 \u03a3 = ${written(power, 3)} \u00f7 ${written(sum, 3)} = `,
    [weightText(one.weight), "av-strong"],
  ];
}
