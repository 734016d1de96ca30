// The numbers of the pipeline: what came from the trace, the products of two vectors, and how numbers are written.

import {numbersAt, readPayload} from "../data/payload.js";
import {readAxis} from "../data/tokens.js";

/** @import {PackedAxis, Payload, Place} from "../data/payload.js"
 * @import {Axis} from "../data/tokens.js" */

/** What stands before the numbers, as pipeline_payload.py writes it.
 * @typedef {object} PipelineHeader
 * @property {string} stream
 * @property {number} layer
 * @property {number} head
 * @property {number} heads
 * @property {number} d_k
 * @property {number} d_v
 * @property {number | null} d_model
 * @property {string[]} parts  what a bias is the sum of, by name; none where that isn't known
 * @property {string[]} known  the learned matrices that explain what they make, by what that is
 * @property {{query: number | null, key: number | null}} widths  of what enters the layer
 * @property {number} scale  what the scores are multiplied by
 * @property {number | null} softcap
 * @property {number | null} sink  one more entry of each row's softmax, whose share is dropped
 * @property {[name: string, label: string][]} steps
 * @property {PackedMixer} [mixer]  of a layer without a softmax
 * @property {PackedAxis[]} axes
 * @property {{query: number, key: number}} axis
 * @property {string} rest  what the rest of the layer has to be called
 * @property {boolean} whole  whether every row and every key is there
 * @property {number[]} queries  the rows that are there
 * @property {number[]} keys  the keys whose vectors are there
 * @property {Record<string, [at: Place, rows: number, columns: number]>} arrays */

/** A layer without a softmax: its rule, whose matrices there are, whether later tokens never reach earlier ones, over how
 * many tokens values were mixed before, what its query and key are called, and the stages of a weight, each with the
 * sign by which its factor changes the number before.
 * @typedef {object} PackedMixer
 * @property {string} kind
 * @property {"head" | "channel"} per
 * @property {boolean} causal
 * @property {number} convolved
 * @property {[query: string, key: string]} letters
 * @property {[name: string, label: string, says: string, sign: "" | "\u00d7" | "\u00f7" | "+"][]} stages */

/** One head opened.
 * @typedef {object} Opened
 * @property {PipelineHeader} header
 * @property {Axis} queries
 * @property {Axis} keys
 * @property {Record<string, {numbers: Float32Array, rows: number, columns: number}>} arrays */

/** What one key is to the chosen query, or all keys without a lane of their own together, or the sink.
 * @typedef {object} Lane
 * @property {"key" | "others" | "sink"} kind
 * @property {number} key  its position; -1 for what is no key
 * @property {string} name
 * @property {number} entry  what enters the softmax; of others the least
 * @property {number} most  of others the largest entry
 * @property {number} weight
 * @property {number} share  its part of the row: its weight, or without a softmax its size over the sum of all sizes
 * @property {ArrayLike<number> | null} value  of others their weighted sum; null for the sink */

/** A pair of positions, with all numbers on its way.
 * @typedef {object} Pair
 * @property {number} query
 * @property {number} key
 * @property {Float32Array} q
 * @property {Float32Array} k
 * @property {Float64Array} terms  q × k, by dimension
 * @property {number[]} named  the dimensions of the largest terms, largest first
 * @property {number} weight
 * @property {boolean} isBlocked
 * @property {number} blocked  how many keys the query doesn't look at
 * @property {Float32Array | null} margins  by key: how far it is below the cut if an indexer left it out, else NaN; null
 *   without an indexer
 * @property {Float32Array} row  what enters the softmax, by key
 * @property {Float32Array} weights  by key
 * @property {ArrayLike<number>} shares  by key
 * @property {boolean} isSigned  whether weights may be negative, and don't sum to 1
 * @property {Lane[]} lanes */

// The same numbers as in pipeline_payload.py: how many keys have a lane each, and how many where there are more.
const [MOST_LANES, HEAVIEST_LANES] = [25, 12];

/** @param {Uint8Array} bytes @returns {Opened} */
export function readOpened(bytes) {
  /** @type {Payload<PipelineHeader>} */
  const payload = readPayload(bytes);
  const {header} = payload;
  const [queries, keys] = [header.axis.query, header.axis.key].map((axis) => readAxis(header.axes[axis]));
  const arrays = Object.entries(header.arrays).map(([name, [at, rows, columns]]) => [
    name,
    {numbers: numbersAt(payload, at, Float32Array), rows, columns},
  ]);
  return {header, queries, keys, arrays: Object.fromEntries(arrays)};
}

/** One row of a matrix, or null where there is no such matrix or row.
 * @param {Pick<Opened, "arrays">} opened @param {string} name @param {number} row  counted among the rows that are there */
export function rowOf({arrays}, name, row) {
  const {numbers, rows, columns} = arrays[name] ?? {rows: 0};
  return numbers && row >= 0 && row < rows ? numbers.subarray(row * columns, (row + 1) * columns) : null;
}

/** Whether all numbers of a pair are there. @param {Opened} opened @param {number} query @param {number} key */
export function hasPair({header}, query, key) {
  return header.queries.includes(query) && header.keys.includes(key);
}

/** A pair, opened.
 * @param {Opened} opened @param {number} query @param {number} key
 * @param {number} count  how many terms are named
 * @returns {Pair} */
export function openPair(opened, query, key, count) {
  const row = opened.header.queries.indexOf(query);
  const [masked, weights] = ["masked", "weights"].map((name) => present(rowOf(opened, name, row)));
  // Some layers without a softmax compare no vectors.
  const q = rowOf(opened, "query", row) ?? new Float32Array(0);
  const k = rowOf(opened, "key", opened.header.keys.indexOf(key)) ?? q;
  const isSigned = opened.header.mixer !== undefined;
  const shares = isSigned ? sharesOf(weights) : weights;
  const terms = Float64Array.from(q, (number, dimension) => number * k[dimension]);
  const order = [...terms.keys()].sort((one, other) => Math.abs(terms[other]) - Math.abs(terms[one]));
  const blocked = masked.reduce((sum, entry) => sum + Number(entry === -Infinity), 0);
  return {
    ...{query, key, q, k, terms, blocked, weights, shares, isSigned, row: masked},
    margins: rowOf(opened, "margins", row),
    named: order.slice(0, count),
    weight: weights[key],
    isBlocked: masked[key] === -Infinity,
    lanes: lanesOf(opened, key, masked, weights, shares),
  };
}

/** Whether an indexer left a key out. @param {Pick<Pair, "margins">} pair @param {number} key */
export function isUnpicked({margins}, key) {
  return margins !== null && !Number.isNaN(margins[key] ?? NaN);
}

/** What happened to a key that doesn't enter the softmax. @param {Pick<Pair, "margins">} pair @param {number} key */
export function fateOf(pair, key) {
  return isUnpicked(pair, key) ? "not picked" : "blocked";
}

/** Each weight's size over the sum of all sizes. @param {Float32Array} weights */
function sharesOf(weights) {
  const all = weights.reduce((sum, one) => sum + Math.abs(one), 0) || 1;
  return Float64Array.from(weights, (one) => Math.abs(one) / all);
}

/** What each key is to the query, in the text's order; of a long text the heaviest, the chosen one, and all others.
 * @param {Opened} opened @param {number} key @param {Float32Array} masked @param {Float32Array} weights
 * @param {ArrayLike<number>} shares @returns {Lane[]} */
function lanesOf(opened, key, masked, weights, shares) {
  const {header, keys} = opened;
  const shown = header.whole ? lanesAmong(weights, key) : header.keys;
  /** @type {Lane[]} */
  const lanes = shown.map((at) => ({
    ...{kind: "key", key: at, name: keys.names[at], entry: masked[at], most: masked[at], weight: weights[at]},
    ...{share: shares[at], value: rowOf(opened, "value", header.keys.indexOf(at))},
  }));
  if (shown.length < weights.length) lanes.push(othersOf(opened, new Set(shown), masked, weights, shares));
  if (header.sink !== null) {
    const weight = 1 - weights.reduce((sum, one) => sum + one, 0);
    const sink = {entry: header.sink, most: header.sink, weight, share: weight, value: null};
    lanes.push({kind: "sink", key: -1, name: "sink", ...sink});
  }
  return lanes;
}

/** @param {Float32Array} weights @param {number} key */
export function lanesAmong(weights, key) {
  const all = [...weights.keys()];
  if (all.length <= MOST_LANES) return all;
  const size = (/** @type {number} */ at) => Math.abs(weights[at]);
  const heaviest = all.sort((one, other) => size(other) - size(one) || one - other).slice(0, HEAVIEST_LANES);
  return [...new Set([...heaviest, key])].sort((one, other) => one - other);
}

/** All keys without a lane of their own.
 * @param {Opened} opened @param {Set<number>} shown @param {Float32Array} masked @param {Float32Array} weights
 * @param {ArrayLike<number>} shares @returns {Lane} */
function othersOf(opened, shown, masked, weights, shares) {
  const others = [...weights.keys()].filter((at) => !shown.has(at));
  const entries = others.map((at) => masked[at]).filter((entry) => entry !== -Infinity);
  return {
    kind: "others",
    key: -1,
    name: `${others.length} others`,
    entry: entries.length ? Math.min(...entries) : -Infinity,
    most: entries.length ? Math.max(...entries) : -Infinity,
    weight: others.reduce((sum, at) => sum + weights[at], 0),
    share: others.reduce((sum, at) => sum + shares[at], 0),
    value: rowOf(opened, "rest", 0) ?? mixed(opened, others, weights),
  };
}

/** The weighted sum of some keys' values, all of which are there.
 * @param {Opened} opened @param {number[]} keys @param {Float32Array} weights */
function mixed(opened, keys, weights) {
  const sum = new Float64Array(opened.header.d_v);
  for (const at of keys) {
    const value = present(rowOf(opened, "value", opened.header.keys.indexOf(at)));
    for (let i = 0; i < sum.length; i++) sum[i] += weights[at] * value[i];
  }
  return sum;
}

/** @template T @param {T | null} found @returns {T} */
export function present(found) {
  if (found === null) throw new Error("the pipeline needs more numbers than it received");
  return found;
}

/** How far from 0 the furthest of some numbers is. @param {ArrayLike<number>} numbers */
export function furthest(numbers) {
  return Math.max(...Array.from(numbers, Math.abs));
}

/** A number with so many digits after the point, and with a minus that is one.
 * @param {number} number @param {number} digits */
export function written(number, digits = 2) {
  if (!Number.isFinite(number)) return number < 0 ? "\u2212\u221e" : "\u221e";
  const text = Math.abs(number) >= 1e5 ? Math.abs(number).toExponential(2) : Math.abs(number).toFixed(digits);
  return (number < 0 && Number(text) !== 0 ? "\u2212" : "") + text;
}

/** The same with its sign. @param {number} number */
export function signed(number) {
  const text = written(number);
  return text.startsWith("\u2212") ? text : `+${text}`;
}

/** A number of a stage: without a softmax it may be small, and then has the two digits that count.
 * @param {{isSigned: boolean}} pair @param {number} number */
export function stageText({isSigned}, number) {
  const size = Math.abs(number);
  if (!isSigned || size >= 0.095 || size === 0 || !Number.isFinite(number)) return written(number);
  return (
    (number < 0 ? "\u2212" : "") + (size < 0.001 ? size.toExponential(1).replace("-", "\u2212") : size.toPrecision(2))
  );
}

/** Which step's matrix a title opens; none where the head doesn't have it.
 * @param {Pick<PipelineHeader, "steps">} header @param {string} name */
export function stepNamed({steps}, name) {
  return steps.some(([one]) => one === name) ? name : "";
}
