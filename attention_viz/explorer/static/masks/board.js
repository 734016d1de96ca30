// What is known of a mask and of what it did: from the run without it, from the run with it, and from arithmetic.

import {layerPlace} from "../heads/numbers.js";
import {numbersAt, readPayload, readPlane} from "../data/payload.js";
import {actsIn, both, bytesOf, readsTheSame, softmaxOver, unpackBits} from "./rules.js";

/** @import {Payload, Place} from "../data/payload.js"
 * @import {Message} from "../hosts/hosting.js"
 * @import {Cells, MaskChoice} from "./rules.js" */

/** The names of an axis's tokens, repeated ones numbered, and their places in a picture or a sound.
 * @typedef {{tokens: string[], placed?: (string | null)[] | null, special: number[], padding: number[]}} BoardAxis */

/** What stands before the planes, as `pack_board` in mask_payload.py writes it.
 * @typedef {object} BoardHeader
 * @property {string} id
 * @property {BoardAxis} queries
 * @property {BoardAxis} keys
 * @property {{label: string, number: number, heads: number}[]} layers
 * @property {number} layer
 * @property {number} head
 * @property {Mixed} [mixed]  how cells are read where there is no softmax
 * @property {string} [kind]  the layer's, where there is no softmax
 * @property {number | null} sinks
 * @property {Place} logits
 * @property {Place} values  of the head on the screen, a row for each key
 * @property {Place} open
 * @property {Place | null} weights  of all heads, where they are few enough
 * @property {Place[][] | null} opens  of each layer, for each head or once for all */

/** What a run with the mask came to, as `run_of` in mask_payload.py writes it.
 * @typedef {{weights: string, others: string | null, open: string, heads: (number | null)[][], outputs: number[],
 *   said: string[], cosine: number | null, likelier: [token: string, before: number, after: number][]}} PackedRun */

/** A run as it is drawn from, the weights those of the head on the screen.
 * @typedef {Omit<PackedRun, "weights" | "others" | "open"> &
 *   {weights: Float64Array, others: Uint16Array | null, open: Cells}} Run */

/** @typedef {"before" | "after" | "difference"} Shown */

/** Cells of a layer without a softmax: weights with signs, or of all channels what arrives.
 * @typedef {"signed" | "arrived"} Mixed */

/** What the page says: the mask that it shows, its cells, and what it did; `board` names the bytes that it belongs to.
 * @typedef {Message & {board: string, choice: MaskChoice, weights: Shown, added: string, locked: string, elsewhere: string, link: [query: number, key: number] | null,
 *   predicts: string, run: PackedRun | null}} BoardMessage */

/** The run without the mask.
 * @typedef {object} Ground
 * @property {BoardHeader} header
 * @property {number} rows
 * @property {number} columns
 * @property {Float32Array} logits
 * @property {Float32Array} values  of the head on the screen, a row for each key
 * @property {Cells} own  what the model itself leaves open
 * @property {Float64Array} before
 * @property {Uint16Array | null} others
 * @property {Cells[][]} opens
 * @property {number[]} starts  the number of each layer's first head among all */

/** What is drawn of a head. Without `after` it isn't known yet.
 * @typedef {object} Matrices
 * @property {number} layer
 * @property {number} head
 * @property {Float64Array} before
 * @property {Float64Array | null} after
 * @property {Cells} own
 * @property {Cells} open  what is open with the mask
 * @property {Mixed} [mixed]  where there is no softmax */

// What a weight of 1 is sent as, as in mask_payload.py.
const WHOLE = 65_534;
// A weight that changed by less stays "0.000" as it is written.
const LEAST_CHANGE = 0.0005;

/** The run without the mask, from its bytes. @param {Uint8Array} bytes @returns {Promise<Ground>} */
export async function readGround(bytes) {
  /** @type {Payload<BoardHeader>} */
  const payload = readPayload(bytes);
  const {header} = payload;
  const [rows, columns] = [header.queries.tokens.length, header.keys.tokens.length];
  const size = rows * columns;
  const logits = numbersAt(payload, header.logits, Float32Array);
  const values = numbersAt(payload, header.values, Float32Array);
  const own = unpackBits(await readPlane(payload, header.open), size);
  const places = header.opens ?? [];
  const opens = await Promise.all(
    places.map((layer) => Promise.all(layer.map(async (at) => unpackBits(await readPlane(payload, at), size)))),
  );
  return {
    ...{header, rows, columns, logits, values, own, opens},
    before: header.mixed ? Float64Array.from(logits) : softmaxOver(logits, own, columns, header.sinks),
    others: header.weights && numbersAt(payload, header.weights, Uint16Array),
    starts: header.layers.map((_, layer) => header.layers.slice(0, layer).reduce((sum, {heads}) => sum + heads, 0)),
  };
}

/** What a run came to.
 * @param {PackedRun} packed
 * @param {number} size  how many cells a head has
 * @param {boolean} [mixed]  whether its layer has no softmax, so that weights aren't parts of 1
 * @returns {Run} */
export function readRun({weights, others, open, ...numbers}, size, mixed = false) {
  const {buffer} = bytesOf(weights);
  return {
    ...numbers,
    weights: mixed ? Float64Array.from(new Float32Array(buffer)) : shares(new Uint16Array(buffer)),
    others: others === null ? null : new Uint16Array(bytesOf(others).buffer),
    open: unpackBits(bytesOf(open), size),
  };
}

/** @param {Uint16Array} levels */
function shares(levels) {
  return Float64Array.from(levels, (level) => level / WHOLE);
}

/** A head before and after the mask: from the run where there is one, else from arithmetic where that is exact.
 * @param {Ground} ground
 * @param {{choice: MaskChoice, added: Cells, run: Run | null, peek: {layer: number, head: number} | null}} state
 * @returns {Matrices} */
export function matricesOf(ground, {choice, added, run, peek}) {
  const {header, logits, columns} = ground;
  const at = peek ?? header;
  const {layer, head} = at;
  const mine = layer === header.layer && head === header.head;
  const opens = ground.opens[layerPlace(header.layers, layer)];
  const own = mine ? ground.own : (opens[head] ?? opens[0]);
  const acts = actsIn(choice, layer, head);
  const open = acts ? both(own, added) : own;
  if (mine) {
    const exact = choice.mask === "none" || readsTheSame(choice, layer, header.layers);
    // Without a softmax nothing is shared out again: blocked cells become 0.
    const masked = () =>
      header.mixed
        ? ground.before.map((one, cell) => one * open[cell])
        : softmaxOver(logits, open, columns, header.sinks);
    const {mixed} = header;
    const live = exact ? masked() : null;
    return {layer, head, own, open, before: ground.before, after: run ? run.weights : live, ...(mixed && {mixed})};
  }
  const before = headOf(ground, /** @type {Uint16Array} */ (ground.others), layer, head);
  const unchanged = choice.mask === "none" || (readsTheSame(choice, layer, header.layers) && !acts) ? before : null;
  return {layer, head, own, open, before, after: run?.others ? headOf(ground, run.others, layer, head) : unchanged};
}

/** How far each query's output of the head on the screen goes, as a share of its length before; null where its weights
 * with the mask aren't known yet, or it has no values, as of weights that nothing was fetched by.
 * @param {Pick<Ground, "values" | "rows" | "columns">} ground
 * @param {Pick<Matrices, "before" | "after">} matrices  of that head
 * @returns {number[] | null} */
export function ownOutputs({values, rows, columns}, {before, after}) {
  if (!after || values.length === 0) return null;
  const width = values.length / columns;
  const [was, change] = [new Float64Array(width), new Float64Array(width)];
  return Array.from({length: rows}, (_, row) => {
    was.fill(0);
    change.fill(0);
    for (let key = 0; key < columns; key++) {
      const at = row * columns + key;
      const more = after[at] - before[at];
      for (let place = 0, value = key * width; place < width; place++, value++) {
        was[place] += before[at] * values[value];
        change[place] += more * values[value];
      }
    }
    const length = Math.hypot(...was);
    return length > 0 ? Math.hypot(...change) / length : 0;
  });
}

/** @param {Ground} ground @param {Uint16Array} levels @param {number} layer @param {number} head */
function headOf({header, starts, rows, columns}, levels, layer, head) {
  const size = rows * columns;
  const start = (starts[layerPlace(header.layers, layer)] + head) * size;
  return shares(levels.subarray(start, start + size));
}

/** Whether a head's weights are at hand, so that it can be looked at without being chosen.
 * @param {Ground} ground @param {{layer: number, head: number}} place */
export function isAtHand({header, others}, {layer, head}) {
  return others !== null || (layer === header.layer && head === header.head);
}

/** The tokens that are no words. @param {Ground} ground */
export function wordless({header: {keys}}) {
  return new Set([...keys.special, ...keys.padding]);
}

/** Whether the model lets no token look at a later one. @param {Ground} ground */
export function looksBack({own, columns}) {
  return !own.some((open, at) => open === 1 && at % columns > Math.floor(at / columns));
}

/** How many cells are blocked that the model leaves open. @param {Matrices} matrices */
export function countCut({own, open}) {
  let count = 0;
  for (let at = 0; at < own.length; at++) count += own[at] & ~open[at];
  return count;
}

/** The end of a scale for the largest of some numbers: the next round one. @param {number} most */
export function roundEnd(most) {
  const ends = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 2, 3, 4, 6, 10];
  return ends.find((end) => most <= end) ?? most;
}

/** A share as people write it. @param {number} share */
export function percent(share) {
  if (share < 0.0005) return share > 0 ? "<0.1 %" : "0 %";
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** How far an output moved, against its length before: from there on a multiple, as a change can be longer than what it
 * changes.
 * @param {number} share */
export function lengths(share) {
  return share < 0.995 ? percent(share) : `${share.toFixed(2)} \u00d7`;
}

/** Whether a mask leaves some row of a head as it was.
 * @param {Pick<Matrices, "before" | "after">} matrices @param {number} columns */
export function keepsRow({before, after}, columns) {
  if (!after) return false;
  const kept = new Uint8Array(before.length / columns).fill(1);
  for (let at = 0; at < before.length; at++)
    if (Math.abs(after[at] - before[at]) >= LEAST_CHANGE) kept[Math.floor(at / columns)] = 0;
  return kept.includes(1);
}
