// What becomes of one score before the softmax: each step that the model has, and what it changed. Without a softmax, the
// stages that make a weight.

import {fateOf, isUnpicked, present, rowOf, signed, stageText, written} from "./numbers.js";

/** @import {Opened, Pair, PipelineHeader} from "./numbers.js" */

// How high a step is that has a number, one of many, and one that is a line that says that nothing changed.
const [ROOMY, CROWDED, SKIPPED] = [80, 62, 52];

/** One step of a score.
 * @typedef {object} ChainStep
 * @property {string} name  of the step
 * @property {string} label
 * @property {number} before
 * @property {number} value  after it
 * @property {string} how  what it does, in a few signs
 * @property {boolean} skipped  whether it changed nothing in the whole row
 * @property {string} [fate]  what happened to a key that isn't allowed
 * @property {Part[]} [parts]  of a bias, what it is the sum of, where that is known */

/** @typedef {{name: string, value: number}} Part */

/** The steps from the sum of the terms to what enters the softmax, the sum itself first.
 * @param {Opened} opened @param {Pair} pair @returns {ChainStep[]} */
export function chainOf(opened, pair) {
  const {header} = opened;
  const row = header.queries.indexOf(pair.query);
  if (header.mixer) return stagesOf(opened, pair, row, pair.key);
  const at = (/** @type {string} */ name) => present(rowOf(opened, name, row))[pair.key];
  /** @type {ChainStep[]} */
  const chain = [];
  let before = at("scores");
  for (const [name, label] of header.steps) {
    const told = HOW[name]?.(opened, pair, row);
    if (!told) continue;
    const value = name === "allowed" ? pair.row[pair.key] : at(name);
    chain.push({name, label, before, value, ...told});
    before = value;
  }
  return chain;
}

/** The stages from what is read of a key to its weight, without those that add nothing; only the weight where the key
 * can't be reached.
 * @param {Opened} opened @param {Pair} pair @param {number} row @param {number} key @returns {ChainStep[]} */
function stagesOf(opened, pair, row, key) {
  if (pair.row[key] === -Infinity)
    return [{name: "weights", label: "Weight", before: 0, value: 0, how: "nothing arrives", skipped: false}];
  /** @type {ChainStep[]} */
  const chain = [];
  let before = 0;
  for (const [name, label, says, sign] of opened.header.mixer?.stages ?? []) {
    const value = present(rowOf(opened, `stage ${name}`, row))[key];
    const factor = sign && chain.length ? factorAt(opened, `factor ${name}`, row, key) : null;
    const number = factor === null ? "" : stageText(pair, Math.abs(factor));
    const plus = sign === "+" && (factor ?? 0) < 0 ? "\u2212" : sign;
    const how = factor === null ? says : `${plus} ${number}${says ? ` ${says}` : ""}`;
    if (sign !== "+" || factor !== 0) chain.push({name, label, before, value, how, skipped: false});
    before = value;
  }
  return chain;
}

/** A stage's factor at a cell; the same number for each row or key may be there once.
 * @param {Opened} opened @param {string} name @param {number} row @param {number} key */
function factorAt({arrays}, name, row, key) {
  const {numbers, rows, columns} = arrays[name];
  return numbers[Math.min(row, rows - 1) * columns + Math.min(key, columns - 1)];
}

/** How one key's weight comes about, in a line. @param {Opened} opened @param {Pair} pair @param {number} key */
export function stagesTold(opened, pair, key) {
  const row = opened.header.queries.indexOf(pair.query);
  return stagesOf(opened, pair, row, key).reduce(
    (line, {how, value}, at) => (at ? `${line} \u2192 ${how} = ${stageText(pair, value)}` : stageText(pair, value)),
    "",
  );
}

/** How high each step is after the first: what changes nothing is a line, anything else a number.
 * @param {ChainStep[]} chain */
export function heightsOf(chain) {
  return chain.slice(1).map(({skipped}) => (skipped ? SKIPPED : chain.length > 3 ? CROWDED : ROOMY));
}

/** @type {Record<string, (opened: Opened, pair: Pair, row: number) => {how: string, skipped: boolean, fate?: string, parts?: Part[]}>} */
const HOW = {
  scores: () => ({how: "sum", skipped: false}),
  scaled: ({header}) => ({how: scaling(header), skipped: header.scale === 1}),
  softcapped: ({header}) => ({how: `kept within \u00b1${header.softcap}`, skipped: false}),
  biased: (opened, pair, row) => {
    const after = present(rowOf(opened, "biased", row));
    const before = present(rowOf(opened, "softcapped", row) ?? rowOf(opened, "scaled", row));
    const skipped = after.every((number, key) => number === before[key]);
    const parts = partsOf(opened, pair, row);
    const added = signed(after[pair.key] - before[pair.key]);
    const why = parts.length > 1 ? `in ${parts.length} parts` : (parts[0]?.name ?? "for these positions");
    return {how: skipped ? "adds 0 to this row: skipped" : `${added} ${why}`, skipped, parts};
  },
  allowed: (opened, pair) => ({
    how: blocking(opened, pair),
    skipped: pair.blocked === 0,
    fate: fateOf(pair, pair.key),
  }),
};

/** @param {Opened} opened @param {Pair} pair @param {number} row @returns {Part[]} */
function partsOf(opened, {key}, row) {
  return opened.header.parts.map((name, at) => ({name, value: present(rowOf(opened, `part ${at}`, row))[key]}));
}

/** @param {{scale: number, d_k: number}} header */
export function scaling({scale, d_k: width}) {
  if (scale === 1) return "not scaled: skipped";
  if (Math.abs(scale * Math.sqrt(width) - 1) > 1e-6) return `\u00d7 ${Number(scale.toPrecision(3))}`;
  return `\u00f7 \u221a${width} = ${Math.sqrt(width).toFixed(2)}`;
}

/** @param {Opened} opened @param {Pair} pair */
function blocking(opened, pair) {
  if (pair.blocked === 0) return "nothing blocked: skipped";
  const all = [...pair.row.keys()].filter((key) => pair.row[key] === -Infinity);
  const reasons = all.map((key) => reasonOf(opened, pair, key)).filter((reason) => reason !== "left");
  const left = all.length - reasons.length;
  const kinds = new Set(reasons);
  const kind = kinds.size === 1 ? (kinds.has("later") ? "later " : kinds.has("padding") ? "padding " : "") : "";
  const blocked = `${reasons.length} ${kind}${reasons.length === 1 ? "key" : "keys"} blocked`;
  if (!left) return blocked;
  return reasons.length ? `${blocked}, ${left} not picked` : `${left} not picked`;
}

/** Why a query doesn't look at a key: an indexer left it out, it is padding, it comes later, or a mask says so.
 * @param {Opened} opened @param {Pick<Pair, "query" | "margins">} pair @param {number} key
 * @returns {"left" | "padding" | "later" | "mask"} */
export function reasonOf({header}, pair, key) {
  const {query} = pair;
  if (isUnpicked(pair, key)) return "left";
  if (header.axes[header.axis.key].padding.includes(key)) return "padding";
  // Spans, or an encoder’s keys, may follow a text’s own.
  const own = header.axes[header.axis.query].labels.length;
  return (header.mixer?.causal ?? header.stream.startsWith("decoder")) && key > query && key < own ? "later" : "mask";
}

/** How a number came about, for the line of arithmetic.
 * @param {ChainStep} step @param {Pick<PipelineHeader, "softcap" | "mixer">} header */
export function stepTold({name, before, value, how, fate, parts = []}, {softcap, mixer}) {
  if (mixer) {
    const [from, to] = [before, value].map((number) => stageText({isSigned: true}, number));
    return /^[\u00d7\u00f7+\u2212]/.test(how) ? `${from} ${how} = ${to}` : `${from} \u2192 ${how} \u2192 ${to}`;
  }
  const [from, to] = [written(before), written(value)];
  if (name === "scaled") return `${from} ${how.split(" = ")[0]} = ${to}`;
  if (name === "softcapped") return `${softcap} \u00b7 tanh(${from} \u00f7 ${softcap}) = ${to}`;
  if (name === "biased") {
    const all = parts.length > 0 ? parts : [{name: "for these positions", value: value - before}];
    const added = all.map((part) => `${signed(part.value).replace(/^./, "$& ")} ${part.name}`);
    return `${from} ${added.join(" ")} = ${to}`;
  }
  if (value === -Infinity) return `${fate}: ${from} becomes ${to}`;
  return `${how}, but not this one: ${from} stays`;
}
