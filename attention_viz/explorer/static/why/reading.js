// What the Why page is told, and its numbers in words. No element is made here.

import {weightText} from "../data/scale.js";

/** @import {SeenBeside} from "./photo.js"
 * @import {SplitHeader} from "./verdict.js" */

/** A line of the sum: what wrote it, and how much; `head` where it is one.
 * @typedef {{label: string, number: number, head: [number, number] | null}} SumLine */

/** A part of the sum. `towards` is "more", "less", or empty where it is told as one.
 * @typedef {{kind: string, towards: string, sum: number, lines: SumLine[]}} SumGroup */

/** What `pack_why` packs.
 * @typedef {object} WhyHeader
 * @property {string} name  of the number, told apart from any other by it
 * @property {string} more
 * @property {string} less
 * @property {number} total
 * @property {number} remainder
 * @property {string} side
 * @property {[layer: number, query: number, key: number] | null} [pair]  of a score
 * @property {number} at
 * @property {boolean} own  whether the words that look are those that are looked at
 * @property {string} unit  what its words are: "word", "patch" or "frame"
 * @property {{query: string, key: string}} units  what those are that look, and those that are looked at
 * @property {string[]} queries
 * @property {string[]} keys
 * @property {{query: number[], key: number[]}} [specials]  where special tokens are, such as [CLS]
 * @property {{query: Record<number, string>, key: Record<number, string>}} [spoken]  patches by where they are
 * @property {number[]} heads
 * @property {string[]} [kinds]  of each layer, what it is without a softmax, such as "gated delta"; else empty
 * @property {number[]} [channels]  the layers whose channels count as one head
 * @property {number[][]} map
 * @property {number[]} mlps
 * @property {SumGroup[]} groups
 * @property {{at: number | null, count?: number, number: number}[]} words
 * @property {Record<string, [number, number, number][]>} sources
 * @property {Record<string, number>} [sizes]  the Σ|·| of each signed row: its head has no softmax
 * @property {[number, number][]} listed
 * @property {SplitHeader | null} [split]  of a score that no head wrote
 * @property {SeenBeside | null} [seen]  the images beside the text */

// Below this a number is told as next to nothing; within this share two numbers are told as the same.
const [NOTHING, ALIKE] = [0.1, 0.25];

/** A number with its sign, a real minus. @param {number} number */
export function signed(number) {
  const text = Math.abs(number).toFixed(2);
  if (Number(text) === 0) return text;
  return `${number < 0 ? "−" : "+"}${text}`;
}

/** A number with a minus where it is below 0. @param {number} number */
export function plainNumber(number) {
  return number.toFixed(2).replace("-", "−");
}

/** What a difference of logits means for the probabilities. @param {number} gap */
export function timesAsLikely(gap) {
  const times = Math.exp(Math.abs(gap));
  const written = times < 10 ? times.toFixed(1) : Math.round(Number(times.toPrecision(2))).toLocaleString("en");
  return `${times < 1e6 ? written : "over a million"} times ${gap < 0 ? "less" : "as"} likely`;
}

/** How much of a score other heads wrote. @param {Pick<WhyHeader, "map">} header */
export function writtenByHeads({map}) {
  const sum = map.flat().reduce((total, one) => total + one, 0);
  return `Other heads wrote ${signed(sum)} of it`;
}

/** The part that carries a number: the largest with its sign, heads and MLPs net; and that part in words.
 * @param {WhyHeader} header @returns {{kind: string, sum: number, words: string} | null} */
export function mainPart({groups, total, side, unit}) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const {kind, sum} of groups) sums.set(kind, (sums.get(kind) ?? 0) + sum);
  const carrying = [...sums].filter(([, sum]) => sum * total > 0);
  if (!carrying.length) return null;
  const [kind, sum] = carrying.reduce((most, one) => (Math.abs(one[1]) > Math.abs(most[1]) ? one : most));
  const own = side === "query" ? "query" : "key";
  /** @type {Record<string, string>} */
  const named = {
    Heads: `other heads at the ${own}`,
    MLPs: `the MLPs at the ${own}`,
    "Position embedding": `the ${own}’s position`,
  };
  const isWord = kind.toLowerCase() === `${unit} embedding`;
  return {kind, sum, words: isWord ? `the ${own} ${unit} itself` : (named[kind] ?? kind.toLowerCase())};
}

/** A number next to nothing as a power of ten, such as 2×10⁻⁷. @param {number} number */
export function tiny(number) {
  if (number === 0) return "0";
  const [digit, power] = Math.abs(number).toExponential(0).split("e");
  const raised = [...power.replace("+", "")].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)])).join("");
  return `${digit}×10${raised}`;
}

/** What stands at a place: a special token as it is, a word in quotes; a patch or a frame.
 * @param {Pick<WhyHeader, "queries" | "keys" | "units" | "specials">} header
 * @param {"query" | "key"} side  whether it looks or is looked at
 * @param {number} at */
export function wordAt({queries, keys, units, specials}, side, at) {
  const words = side === "key" ? keys : queries;
  return units[side] !== "word" || specials?.[side].includes(at) ? words[at] : `“${words[at]}”`;
}

/** A position in a sentence: a patch by where it is, as Explore says it; anything else as in a list.
 * @param {Pick<WhyHeader, "queries" | "keys" | "units" | "specials" | "spoken">} header
 * @param {"query" | "key"} side @param {number} at */
export function spokenAt(header, side, at) {
  return header.spoken?.[side][at] ?? wordAt(header, side, at);
}

/** A name as a sentence begins with it: "the" has a capital letter, a word in quotes stays as it is.
 * @param {string} words */
export function begun(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What it means that a head wrote one number and that another is missing when it is silenced.
 * @param {number} direct @param {number} missing */
export function meaningOf(direct, missing) {
  if (Math.abs(direct) < NOTHING && Math.abs(missing) < NOTHING) return "Almost no effect either way.";
  if (Math.abs(missing - direct) <= ALIKE * Math.abs(direct))
    return `Confirmed: ablation removes ${Math.round((100 * missing) / direct)}\u00a0% of its contribution.`;
  if (Math.abs(direct) < NOTHING || Math.abs(missing) > 3 * Math.abs(direct))
    return "It acts through later parts: they read its output and write more.";
  if (isMadeUpFor(direct, missing)) return "Later parts compensate: without this head, they write more of the same.";
  return "It also acts through later parts, which read its output.";
}

/** Whether others write more of the same when a head is silenced: less is missing than it wrote, or the opposite.
 * @param {number} direct @param {number} missing */
export function isMadeUpFor(direct, missing) {
  const isLess = Math.sign(direct) !== Math.sign(missing) || Math.abs(missing) < Math.abs(direct);
  return isLess && Math.abs(missing - direct) > ALIKE * Math.abs(direct);
}

/** Where a head looks from a row, or what it carries to it, most first.
 * @param {WhyHeader} header @param {[number, number, number][]} sources
 * @param {number} size  the row's Σ|·| */
export function looksAt(header, sources, size = 1) {
  return sortedBy(sources, 1)
    .slice(0, 2)
    .filter(([, weight]) => Math.abs(weight) >= 0.05 * size)
    .map(([at, weight]) => `${wordAt(header, "key", at)} ${weightText(weight)}`)
    .join(" · ");
}

/** A head's name: layer and head, or the layer where all its channels count as one. @param {WhyHeader} header
 * @param {[number, number]} place */
export function nameOfHead({channels}, [layer, head]) {
  return channels?.includes(layer) ? `layer ${layer}` : `${layer}·${head}`;
}

/** A head spelled out, with its layer's kind if that has no softmax. @param {WhyHeader} header
 * @param {[number, number]} place */
export function headInFull({channels, kinds}, [layer, head]) {
  const kind = kinds?.[layer] ? ` (${kinds[layer]})` : "";
  return channels?.includes(layer) ? `layer ${layer}${kind}, all channels` : `layer ${layer}${kind}, head ${head}`;
}

/** Whether a head's layer has no softmax. @param {WhyHeader} header @param {[number, number]} place */
export function isMixer({kinds}, [layer]) {
  return Boolean(kinds?.[layer]);
}

/** The word that contributes most through a head. @param {WhyHeader} header @param {[number, number]} place
 * @returns {[number, number, number] | undefined} */
export function mainSource(header, place) {
  return sortedBy(header.sources[place.join(" ")] ?? [], 2)[0];
}

/** The sources of a head, those with the largest weight (1) or contribution (2) first.
 * @param {[number, number, number][]} sources @param {1 | 2} column */
function sortedBy(sources, column) {
  return [...sources].sort((one, other) => Math.abs(other[column]) - Math.abs(one[column]));
}

/** What a head does with its main word: attends to it, or carries its value. If another word has a larger weight, the
 * main word only contributes most; a weight below 0 is told.
 * @param {WhyHeader} header @param {[number, number]} place @param {boolean} [isSeveral]  whether several heads do it */
export function doesWith(header, place, isSeveral = false) {
  const [at, weight] = mainSource(header, place) ?? [0, 0];
  const word = spokenAt(header, "key", at);
  if (!isMixer(header, place)) {
    const [heaviest] = sortedBy(header.sources[place.join(" ")] ?? [], 1);
    if (heaviest && heaviest[0] !== at)
      return `${isSeveral ? "get their largest parts" : "gets its largest part"} from ${word}`;
    return `${isSeveral ? "attend" : "attends"} to ${word}`;
  }
  const below = weight < 0 && !isSeveral ? ` with weight ${weightText(weight)}` : "";
  return `${isSeveral ? "carry" : "carries"} ${word}${below}`;
}

/** How deep a number's colour is on a scale of roots, from 0 to 1. @param {number} number @param {number} full */
export function depthOf(number, full) {
  return full > 0 ? Math.sqrt(Math.min(1, Math.abs(number) / full)) : 0;
}

/** What is missing of a number without each head, where that is known; null where it isn't.
 * @param {WhyHeader} header
 * @param {Map<string, number>} silenced  what the number is without a head
 * @returns {(number | null)[][]} */
export function missingOf({map, total}, silenced) {
  return map.map((row, layer) =>
    row.map((_, head) => {
      const after = silenced.get(`${layer} ${head}`);
      return after === undefined ? null : total - after;
    }),
  );
}

/** The heads with the largest numbers, for or against; at most `count` of them.
 * @param {(number | null)[][]} numbers @param {number} count @returns {[number, number][]} */
export function largestOf(numbers, count) {
  return numbers
    .flatMap((row, layer) =>
      row.flatMap((number, head) =>
        number === null ? [] : [{place: /** @type {[number, number]} */ ([layer, head]), size: Math.abs(number)}],
      ),
    )
    .sort((one, other) => other.size - one.size)
    .slice(0, count)
    .map(({place}) => place);
}

const SILENCED = {
  means: "Ablation: the drop if the head’s output becomes 0 everywhere and the model runs again.",
  each: "ablation",
  title: "Effect of ablating each head",
  list: "Largest ablation effects",
  missing: "lost by ablation",
  apart: "Each head ablated alone, at every position: these numbers don’t add up.",
};
const WORDS = {
  wrote: {
    ...SILENCED,
    means: "Direct attribution: each head’s own contribution to the number.",
    each: "direct attribution",
    title: "Contribution of each head",
    list: "Largest heads",
  },
  silenced: SILENCED,
  put: {
    means: "Activation patching: the change if the head’s output comes from the other text.",
    each: "activation patching",
    title: "Effect of patching each head",
    list: "Largest patching effects",
    missing: "lost by patching",
    apart: "Each head patched alone, at every position: these numbers don’t add up.",
  },
};

/** How the page speaks of what heads are coloured and ordered by. @param {"wrote" | "silenced" | "put"} by */
export function wordsFor(by) {
  return WORDS[by];
}
