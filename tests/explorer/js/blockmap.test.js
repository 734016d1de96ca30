import assert from "node:assert/strict";
import {test} from "node:test";

import {BlockMap, MeanMap} from "../../../attention_viz/explorer/static/data/blockmap.js";
import {codeOf} from "../../../attention_viz/explorer/static/data/thumbnail.js";

// 5 queries and 4 keys in blocks of 2 x 2: three rows of blocks, two columns; (column, row).
const map = new BlockMap(Uint16Array.of(10, 0, 30, 20, 0, 40), Uint8Array.of(0, 0, 0, 0, 1, 0), [2, 2], 3, 100);
const countUp = (count) => Int32Array.from({length: count}, (_, place) => place);

test("blocks come by their largest weight, and those that hold nothing don't", () => {
  assert.deepEqual(
    [...map.byWeight()].map((block) => map.block(block)).map(({top, left, bound}) => [top, left, bound]),
    [
      [4, 2, 0.4],
      [4, 0, 0.3],
      [0, 2, 0.2],
      [0, 0, 0.1],
    ],
  );
  const first = map.block(map.byWeight()[0]);
  assert.deepEqual([first.bottom, first.right], [6, 4]);
});

test("a pixel gets the largest of the blocks under it, and is blocked where all of them are", () => {
  assert.deepEqual([...map.sample(countUp(5), countUp(4), 1, 1)], [40]);
  assert.deepEqual([...map.sample(Int32Array.of(2, 3), countUp(4), 2, 1)], [0, 0xffff]);
  assert.deepEqual([...map.sample(Int32Array.of(0, 2, 4), Int32Array.of(0, 3), 2, 3)], [10, 20, 0, 0xffff, 30, 40]);
});

test("without a pattern nothing is blocked", () => {
  const open = new BlockMap(map.numbers, null, [2, 2], 3, 100);
  assert.deepEqual([...open.sample(Int32Array.of(2, 3), countUp(4), 2, 1)], [0, 0]);
});

// The same blocks with means, in steps of the logarithm.
const CODING = {codes: 4000, faintest: 1e-8};
const codes = Uint16Array.from([0.1, 0, 1e-5, 0.02, 0, 3e-5], (mean) => codeOf(mean, CODING));
const means = new MeanMap(codes, Uint8Array.of(0, 0, 0, 0, 1, 0), [2, 2], 3, CODING);

test("a pixel over several blocks of means gets their mean, those without an open cell left out", () => {
  const [left, right, all] = [
    means.sample(countUp(5), Int32Array.of(0, 1), 1, 1),
    means.sample(countUp(5), Int32Array.of(2, 3), 1, 1),
    means.sample(countUp(5), countUp(4), 1, 1),
  ].map(([code]) => means.values[code]);
  for (const [found, wanted] of [
    [left, (0.1 + 1e-5) / 3],
    [right, (0.02 + 3e-5) / 2],
    [all, (0.1 + 1e-5 + 0.02 + 3e-5) / 5],
  ])
    assert.ok(Math.abs(found / wanted - 1) < 0.005, `${found} for ${wanted}`);
  assert.deepEqual([...means.sample(Int32Array.of(2, 3), Int32Array.of(2, 3), 1, 1)], [0xffff]);
});

test("what is in a block becomes a number of the map that it is put into", () => {
  const content = {most: 0.5, sum: 0.6, open: 6};
  assert.equal(map.encode(content), 50);
  assert.equal(means.encode(content), codeOf(0.1, CODING));
  assert.equal(means.encode({most: 0, sum: 0, open: 0}), 0);
  assert.equal(means.like(codes, null, [1, 1], 3).encode(content), codeOf(0.1, CODING));
});
