import assert from "node:assert/strict";
import {test} from "node:test";

import {LaterPictures, Thumbnail, codeValues} from "../../../attention_viz/explorer/static/data/thumbnail.js";

const values = codeValues({codes: 254, faintest: 1e-4});
const countUp = (count) => Int32Array.from({length: count}, (_, place) => place);

test("codes stand for even steps of the logarithm", () => {
  assert.equal(values.length, 255);
  assert.equal(values[0], 0);
  assert.ok(Math.abs(values[1] - 1e-4) < 1e-12);
  assert.equal(values[254], 1);
  assert.ok(Math.abs(values[11] / values[10] - values[201] / values[200]) < 1e-9);
});

test("a picture's cell lies under the positions that it was made from", () => {
  // Two rows, from 4 of 8 queries; three columns for 7 keys, three keys each and one.
  const codes = Uint8Array.of(1, 2, 3, 4, 5, 255);
  const plain = Uint8Array.of(1, 2, 3, 4, 0, 255);
  const counts = {down: 2, across: 3, queries: 8, keys: 7, sampled: 4};
  const picture = new Thumbnail(codes, plain, counts, values);
  assert.deepEqual([...picture.sample(countUp(8), countUp(7), 3, 2)], [1, 3, 5, 2, 4, 0xffff]);
  assert.deepEqual([...picture.sample(Int32Array.of(4, 5), Int32Array.of(3, 6), 2, 1)], [4, 0xffff]);
  assert.equal(picture.maximum(countUp(8), countUp(7)), values[5]);
});

test("while some columns are hidden the picture without them is drawn", () => {
  const counts = {down: 1, across: 2, queries: 1, keys: 4, sampled: 1};
  const picture = new Thumbnail(Uint8Array.of(200, 7), Uint8Array.of(9, 7), counts, values);
  assert.deepEqual([...picture.sample(countUp(1), countUp(4), 2, 1)], [200, 7]);
  assert.deepEqual([...picture.sample(countUp(1), Int32Array.of(1, 2, 3), 2, 1)], [9, 7]);
  assert.equal(picture.maximum(countUp(1), Int32Array.of(1, 2, 3)), values[9]);
});

test("a layer's pictures may come after the text, before or after somebody waits for them", async () => {
  const later = new LaterPictures();
  const waiting = later.wait("decoder", 3);
  const packed = {header: {thumbnails: [0, 8]}, body: new Uint8Array(8)};
  later.take({stream: "decoder", layer: 3}, packed);
  assert.equal(await waiting, packed);
  assert.equal(await later.wait("decoder", 3), packed);
});
