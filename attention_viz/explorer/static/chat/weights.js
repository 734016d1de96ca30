// A head's weights from each segment of a chat to each, as they came with the text or with a long text's head.

import {placed} from "../heads/numbers.js";
import {numbersAt, readPayload} from "../data/payload.js";

/** @import {HeadChoice, Recording} from "../data/recording.js"
 * @import {Payload} from "../data/payload.js"
 * @import {HeadHeader} from "../data/terms.js" */

/** Those of a long text's heads, by recording and head. @type {WeakMap<Recording, Map<string, Float32Array>>} */
const handedOver = new WeakMap();

/** Keep what a host hands over with a head of this text; a few hundred numbers.
 * @param {Recording} recording @param {Uint8Array} packet */
export function takeSegments(recording, packet) {
  /** @type {Payload<HeadHeader>} */
  const {header, body} = readPayload(packet);
  if (!header.entry?.segments) return;
  const {stream, layer, head} = placed(recording, header);
  const found = handedOver.get(recording) ?? new Map();
  found.set(`${stream} ${layer} ${head}`, numbersAt({body}, header.entry.segments, Float32Array).slice());
  handedOver.set(recording, found);
}

/** A head's weights, row by row; null before they are here.
 * @param {Recording} recording @param {HeadChoice} at @returns {Float32Array | null} */
export function segmentWeights(recording, {stream, layer, head}) {
  const {segments} = recording.header;
  if (!segments) return null;
  const {segments: every, terms} = recording.stream(stream).layers[layer];
  const size = segments.rows.length * segments.columns.length;
  if (every) return numbersAt(recording.payload, every, Float32Array).subarray(head * size, (head + 1) * size);
  const own = terms?.[head]?.segments;
  if (own) return numbersAt(recording.payload, own, Float32Array);
  return handedOver.get(recording)?.get(`${stream} ${layer} ${head}`) ?? null;
}
