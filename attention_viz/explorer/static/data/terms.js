// Reading what one head of a long text follows from, as terms.py packs it.

import {BlockMap, HeadMap, MeanMap} from "./blockmap.js";
import {ComputedHead} from "./computed.js";
import {readOpenKeys} from "./pattern.js";
import {numbersAt, readPlane, readSteps} from "./payload.js";

/** @import {OpenKeys} from "./pattern.js"
 * @import {PackedHead, PackedMask} from "./payload.js" */

/** What stands before the planes of one head that was handed over by itself, as `pack_head` in terms.py writes it; `of` is
 * the trace's `id`.
 * @typedef {{of: string, stream: string, layer: number, head: number, entry: PackedHead, masks: PackedMask[]}} HeadHeader */

/** Whether a head's bytes are all here, or only their beginning, which its maps are made of.
 * @param {HeadHeader} header @param {Uint8Array} body */
export function hasNumbers({entry}, body) {
  const [at, length] = entry.weights ? entry.weights.low : entry.normalisers;
  return at + length <= body.length;
}

/** The maps of one head.
 * @param {{body: Uint8Array}} payload @param {PackedHead} entry @param {PackedMask[]} masks
 * @param {Float64Array} values  the weight that each number stands for */
export async function readMaps(payload, entry, masks, values) {
  const [numbers, averages, sums, open] = await Promise.all([
    readSteps(payload, entry.map),
    readSteps(payload, entry.means),
    readPlane(payload, entry.sums),
    entry.blocked === null ? null : readOpenKeys(payload, masks[entry.blocked]),
  ]);
  const {queries, size} = entry;
  const blocked = open === null ? null : open.blockedBlocks(size);
  const down = Math.ceil(queries / size[0]);
  const map = new BlockMap(numbers, blocked, size, down, values.length - 2);
  const means = new MeanMap(averages, blocked, size, down, entry.means);
  return new HeadMap(map, means, entry, new Float32Array(sums.buffer, sums.byteOffset, queries), open);
}

/** One head, ready to be asked for weights.
 * @param {{body: Uint8Array}} payload @param {PackedHead} entry @param {PackedMask[]} masks
 * @param {Float64Array} values  the weight that each number stands for
 * @param {HeadMap | null} maps  where they have been read */
export async function readHead(payload, entry, masks, values, maps = null) {
  const {map, means, sums, most, open} = maps ?? (await readMaps(payload, entry, masks, values));
  const weights = entry.weights ? await readSteps(payload, entry.weights, true) : null;
  return new ComputedHead(termsOf(payload, entry, open, weights), sums, map, means, most, values);
}

/** @param {{body: Uint8Array}} payload @param {PackedHead} entry @param {OpenKeys | null} open
 * @param {Uint16Array | null} weights */
function termsOf(payload, entry, open, weights) {
  const {queries, keys} = entry;
  if (weights !== null && entry.weights) return {queries, keys, open, weights, steps: entry.weights.steps};
  const {width, scale, softcap, bias} = entry;
  return {
    ...{queries, keys, open, width, scale, softcap},
    query: numbersAt(payload, entry.query, Float32Array),
    key: numbersAt(payload, entry.key, Float32Array),
    normalisers: numbersAt(payload, entry.normalisers, Float64Array),
    bias: bias && {along: bias.along, numbers: numbersAt(payload, bias.at, Float32Array)},
  };
}
