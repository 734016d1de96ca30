// Reading the bytes that Python packed: length, JSON header, arrays (see packet.py for the layout).

/** @import {PackedCharacter} from "../overview/characters.js"
 * @import {Word} from "../hearing/speech.js"
 * @import {PackedMixing} from "./mixing.js" */

/** Where a plane lies behind the header: how many bytes after it, and how many bytes long.
 * @typedef {[offset: number, length: number]} Place */

/**
 * One row of tokens; lists of positions say which are special, padding, of which sentence, or the model's own.
 * @typedef {object} PackedAxis
 * @property {string[]} labels  the tokenizer's own
 * @property {string | string[]} [spelling]  how it writes its pieces, of all or of each
 * @property {number[]} special
 * @property {number[]} padding
 * @property {number[]} [signs]  other tokens that have nothing of a word in them
 * @property {[first: number[], second: number[]]} [sentences]
 * @property {number[]} [generated]
 * @property {number[]} [chances]  the probability that each of these had
 * @property {PackedCharacter[]} [characters]  those that the tokenizer cut
 * @property {(number[] | null)[]} [place]  where each stands in what was read: row and column of a patch, seconds of a frame
 * @property {(string | null)[]} [named]  how patches of several images, and latents, are called in a sentence
 */

/** One image on a sheet, or a frame of a video: where it begins and how many patches it has, the name at its corner, and
 * the same in a sentence.
 * @typedef {{picture: number, thumbnail: boolean, row: number, column: number, down: number, across: number, name: string,
 *   where: string}} Panel */

/** How images stand beside each other, or frames of a video, of which some may be read together.
 * @typedef {{panels: Panel[], video: boolean, together: boolean}} Sheet */

/**
 * A picture as it was read, or a sheet of several: its dots, red, green and blue.
 * @typedef {{rows: number, columns: number, at: Place, sheet?: Sheet}} PackedPicture
 */

/**
 * A sound as it was read: its samples of 16 bits, its spectrogram (column, band), the words that are said of it, the
 * heads that align them with time, and all heads by how closely they follow the speech, best first.
 * @typedef {{rate: number, count: number, at: Place, bands: number, columns: number, mel: Place, words: Word[],
 *   aligning: [layer: number, head: number][], follows: [layer: number, head: number, measure: number][]}} PackedSound
 */

/** One attention layer. `blocked` are numbers of masks, one for each head or one for all of them.
 * @typedef {object} PackedAttention
 * @property {string} label  what the model calls it
 * @property {number} [number]  its number, where some layers are left out; elsewhere its place is
 * @property {number} heads
 * @property {number[] | null} blocked
 * @property {[mask: number, below: Place][]} [left]  keys that an indexer left out, and how far below the cut each is; one
 *   for each selection that heads share
 * @property {Place} high
 * @property {Place} low
 * @property {Place} sums
 * @property {Place} [thumbnails]  of a long text, in place of the weights, unless they come later
 * @property {Place} [plain]  the same without special tokens, where there are any
 * @property {Place} [segments]  of a chat: each head's weights between segments
 * @property {Record<string, PackedHead>} terms  of a long text, by head: of those that came along
 * @typedef {PackedAttention & Partial<PackedMixing>} PackedLayer  of a layer without a softmax, what it has instead */

/** What one head of a long text follows from, as `add_head` in terms.py writes it.
 * @typedef {object} PackedHead
 * @property {number} queries
 * @property {number} keys
 * @property {[number, number]} size  rows and columns of a block of the map
 * @property {number} most  the largest weight
 * @property {{high: Place, low: Place}} map  the largest weight of each block
 * @property {{high: Place, low: Place, codes: number, faintest: number}} means  the mean of each, in steps of its logarithm
 * @property {Place} sums
 * @property {Place} [segments]  of a chat: its weights between segments
 * @property {number | null} blocked  the number of a mask
 * @property {{high: Place, low: Place, steps: number}} [weights]  in even steps from 0 to 1, where its terms are as
 *   many; then it has nothing of what follows
 * @property {number} width
 * @property {number} scale
 * @property {number | null} softcap
 * @property {{along: "key" | "distance", at: Place} | null} bias
 * @property {Place} query
 * @property {Place} key
 * @property {Place} normalisers */

/** Cells that are blocked: those of a causal mask, a bit for each cell, key by key, or all but runs of open cells.
 * @typedef {{kind: "causal", queries: number, keys: number}} CausalMask
 * @typedef {{kind: "bits", queries: number, keys: number, at: Place}} BitMask
 * @typedef {{kind: "runs", queries: number, keys: number, at: Place}} RunMask
 * @typedef {CausalMask | BitMask | RunMask} PackedMask */

/** One kind of attention, or where `signed` the layers without a softmax; `queries` and `keys` are numbers of axes. Such layers are drawn up to `longest` tokens. Of a long text, `sampled` is from how many rows its
 * pictures were made, `side` the rows and columns of such a picture, and `searched` the rows of its findings if not all.
 * @typedef {{name: string, queries: number, keys: number, layers: PackedLayer[], sampled: number,
 *   searched?: number, written?: boolean, side: [number, number], signed?: boolean, longest?: number}} PackedStream */

/** Something that a person should look at: a sentence in parts with their roles, and where it is seen, its layer by number.
 * @typedef {{kind: string, stream: string, layer: number, head: number, query: number, key: number, strength: number,
 *   parts: [text: string, role: string][], effect?: number | null, word?: string, rival?: string}} PackedFinding */

/** A chat's segments, of one stream's tokens: each one's name, first position and the one after its last; and the names of
 * the rows and columns of their matrix.
 * @typedef {{stream: string, spans: [name: string, start: number, end: number][], rows: string[], columns: string[]}} PackedSegments */

/** What stands before a trace's planes, as `pack` in payload.py writes it.
 * @typedef {object} Header
 * @property {PackedFinding[]} [findings]  best first
 * @property {PackedSegments} [segments]  of a chat
 * @property {number} version
 * @property {string} model
 * @property {string[]} edits
 * @property {{label: string, together: boolean} | null} reading  where the numbers aren't the weights that ran
 * @property {number} levels  intervals between 0 and 1
 * @property {number} error  how far a weight may be from the trace
 * @property {number} sum_steps
 * @property {{stream: string, layer: number, head: number, query?: number, key?: number} | null} choice
 * @property {PackedAxis[]} axes
 * @property {PackedMask[]} masks
 * @property {PackedStream[]} streams
 * @property {{picture?: PackedPicture, sound?: PackedSound}} [seen]  what was read, where it was no text
 * @property {string} [channels]  what a host says with a channel of a layer without a softmax: of this trace
 * @property {{id: string, codes: number, faintest: number}} [long]  where heads come as pictures and terms */

/** @template H @typedef {{header: H, body: Uint8Array}} Payload */

/** The header, and the bytes behind it. @template H @param {Uint8Array} bytes @returns {Payload<H>} */
export function readPayload(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return {header, body: bytes.subarray(4 + length)};
}

/** One plane, inflated. The bytes are written and read here, without a Blob or a Response between: each of those has
 * the reader wait for its turn among all that the page has to do, and a head that was just chosen would come after it.
 * @param {{body: Uint8Array}} payload @param {Place} place @returns {Promise<Uint8Array<ArrayBuffer>>} */
export async function readPlane({body}, [offset, length]) {
  const {readable, writable} = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  // What is wrong with the bytes is told where they are read.
  for (const written of [writer.write(body.slice(offset, offset + length)), writer.close()]) written.catch(() => {});
  const reader = readable.getReader();
  /** @type {Uint8Array[]} */
  const parts = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
  const plane = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let filled = 0;
  for (const part of parts) {
    plane.set(part, filled);
    filled += part.length;
  }
  return plane;
}

/** One array that was left as it is, where it lies if its address lets it, else at an address of its own.
 * @template {Float32Array | Float64Array | Uint16Array} N @param {{body: Uint8Array}} payload @param {Place} place
 * @param {{new (buffer: ArrayBufferLike, start?: number, count?: number): N, BYTES_PER_ELEMENT: number}} Numbers */
export function numbersAt({body}, [offset, length], Numbers) {
  const start = body.byteOffset + offset;
  return start % Numbers.BYTES_PER_ELEMENT
    ? new Numbers(body.slice(offset, offset + length).buffer)
    : new Numbers(body.buffer, start, length / Numbers.BYTES_PER_ELEMENT);
}

/** Two planes joined to whole numbers: the upper eight bits, and the lower four, two in a byte, or where `fine` eight.
 * @param {{body: Uint8Array}} payload @param {{high: Place, low: Place}} places */
export async function readSteps(payload, {high, low}, fine = false) {
  const [upper, lower] = await Promise.all([high, low].map((place) => readPlane(payload, place)));
  const steps = new Uint16Array(upper.length);
  for (let i = 0; i < upper.length; i++)
    steps[i] = fine ? (upper[i] << 8) | lower[i] : (upper[i] << 4) | ((lower[i >> 1] >> ((i & 1) << 2)) & 15);
  return steps;
}

/** One layer: all weights as whole numbers (head, key, query), and what each row sums to (head, query).
 * @param {Payload<{sum_steps: number}>} payload @param {{high: Place, low: Place, sums: Place}} layer */
export async function readLayer(payload, {high, low, sums}) {
  const [weights, total] = await Promise.all([readSteps(payload, {high, low}), readPlane(payload, sums)]);
  const rows = new Float32Array(total.length / 2);
  for (let i = 0; i < rows.length; i++) rows[i] = (total[2 * i] | (total[2 * i + 1] << 8)) / payload.header.sum_steps;
  return {weights, rows};
}

/** The weight that each whole number stands for: the middle of an interval; 0 and 1 have numbers of their own.
 * @param {{levels: number}} header */
export function weightValues({levels}) {
  const values = Float64Array.from({length: levels + 2}, (_, number) => (number - 0.5) / levels);
  values[0] = 0;
  // What is nearer to 0 than to this interval's middle was sent as 0.
  values[1] = 0.75 / levels;
  values[levels + 1] = 1;
  return values;
}

/** The number of the interval that a weight lies in, as Python packs it.
 * @param {number} weight @param {number} levels */
export function numberOf(weight, levels) {
  if (weight <= 0.5 / levels) return 0;
  return weight >= 1 ? levels + 1 : Math.min(levels, Math.ceil(weight * levels));
}

/** One pattern of blocked cells (key, query): 1 where a query may not look.
 * @param {{body: Uint8Array}} payload @param {CausalMask | BitMask} mask */
export async function readMask(payload, mask) {
  const {queries, keys} = mask;
  const blocked = new Uint8Array(queries * keys);
  if (mask.kind === "causal") {
    for (let key = 0; key < keys; key++)
      for (let query = 0; query < Math.min(queries, key - (keys - queries)); query++)
        blocked[key * queries + query] = 1;
    return blocked;
  }
  const bits = await readPlane(payload, mask.at);
  for (let i = 0; i < blocked.length; i++) blocked[i] = (bits[i >> 3] >> (i & 7)) & 1;
  return blocked;
}
