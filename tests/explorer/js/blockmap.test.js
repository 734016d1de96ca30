import assert from "node:assert/strict";
import {test} from "node:test";

import {BlockMap} from "../../../attention_viz/explorer/static/data/blockmap.js";

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
