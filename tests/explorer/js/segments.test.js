import assert from "node:assert/strict";
import {test} from "node:test";

import {segmentSpan} from "../../../attention_viz/explorer/static/chat/segments.js";
import {segmentWeights, takeSegments} from "../../../attention_viz/explorer/static/chat/weights.js";

/** @import {Recording} from "../../../attention_viz/explorer/static/data/recording.js"
 * @import {PackedSegments} from "../../../attention_viz/explorer/static/data/payload.js" */

/** @type {PackedSegments} */
const segments = {
  stream: "decoder",
  spans: [
    ["user", 2, 5],
    ["assistant", 7, 8],
  ],
  rows: ["user", "assistant", "other"],
  columns: ["sink", "user", "assistant", "other"],
};

test("a segment's span is where its tokens are among those in sight", () => {
  const every = Int32Array.from({length: 10}, (_, at) => at);
  assert.deepEqual(segmentSpan(segments, "user", every), [2, 5]);
  assert.deepEqual(segmentSpan(segments, "sink", every), [0, 1]);
  assert.deepEqual(segmentSpan(segments, undefined, every), [0, 10]);
  assert.equal(segmentSpan(segments, "other", every), null);
  const without = every.filter((at) => at !== 0 && at !== 3 && at !== 7);
  assert.deepEqual(segmentSpan(segments, "user", without), [1, 3]);
  assert.equal(segmentSpan(segments, "assistant", without), null);
  assert.deepEqual(segmentSpan(segments, "assistant", every.subarray(0, 8)), [7, 8]);
});

/** A recording with a layer of two heads. @param {object} layer @param {Float32Array} numbers */
function recordingOf(layer, numbers) {
  const layers = [layer];
  return /** @type {Recording} */ (
    /** @type {unknown} */ ({
      header: {segments},
      payload: {body: new Uint8Array(numbers.buffer)},
      stream: () => ({name: "decoder", layers}),
      nearest: (/** @type {object} */ at) => at,
    })
  );
}

test("a head's weights come with the text, or with the head, or not yet", () => {
  const numbers = Float32Array.from({length: 24}, (_, at) => at);
  const at = {stream: "decoder", layer: 0, head: 1};
  assert.deepEqual([...(segmentWeights(recordingOf({segments: [0, 96]}, numbers), at) ?? [])], [...numbers.slice(12)]);
  const own = recordingOf({terms: {1: {segments: [0, 48]}}}, numbers);
  assert.deepEqual([...(segmentWeights(own, at) ?? [])], [...numbers.slice(0, 12)]);
  assert.equal(segmentWeights(own, {...at, head: 0}), null);
});

test("what is handed over with a long text's head is kept by head", () => {
  const numbers = Float32Array.from({length: 12}, (_, at) => at / 12);
  const header = new TextEncoder().encode(
    JSON.stringify({of: "a", stream: "decoder", layer: 0, head: 1, entry: {segments: [0, 48]}, masks: []}),
  );
  const size = Math.ceil(header.length / 8) * 8;
  const packet = new Uint8Array(4 + size + 48);
  new DataView(packet.buffer).setUint32(0, size, true);
  packet.fill(32, 4, 4 + size);
  packet.set(header, 4);
  packet.set(new Uint8Array(numbers.buffer), 4 + size);
  const recording = recordingOf({heads: 2}, numbers);
  takeSegments(recording, packet);
  const found = segmentWeights(recording, {stream: "decoder", layer: 0, head: 1});
  assert.deepEqual([...(found ?? [])], [...numbers]);
  assert.equal(segmentWeights(recording, {stream: "decoder", layer: 0, head: 0}), null);
});
