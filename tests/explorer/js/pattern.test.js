import assert from "node:assert/strict";
import {test} from "node:test";

import {OpenKeys, readOpenKeys} from "../../../attention_viz/explorer/static/data/pattern.js";

// Row 0 sees keys 1 and 2, and 5; row 1 nothing; row 2 all of six.
const open = new OpenKeys(3, 6, [0, 2, 2, 3], [1, 3, 5, 6, 0, 6]);
const rows = (pattern) =>
  Array.from({length: pattern.queries}, (_, query) =>
    Array.from({length: pattern.keys}, (__, key) => Number(pattern.isOpen(query, key))).join(""),
  );

test("a cell is open where a run of its row covers it", () => {
  assert.deepEqual(rows(open), ["011001", "000000", "111111"]);
});

test("a row is marked from any key on, as far as there are marks", () => {
  const marks = new Uint8Array(3).fill(7);
  open.mark(0, 2, marks);
  assert.deepEqual([...marks], [1, 0, 0]);
  open.mark(2, 3, marks);
  assert.deepEqual([...marks], [1, 1, 1]);
  open.mark(1, 0, marks);
  assert.deepEqual([...marks], [0, 0, 0]);
});

test("a block is blocked where none of its cells is open", () => {
  // (column of blocks, row of blocks), blocks of 2 x 3 cells
  assert.deepEqual([...open.blockedBlocks([2, 3])], [0, 0, 0, 0]);
  assert.deepEqual([...open.blockedBlocks([1, 3])], [0, 1, 0, 0, 1, 0]);
  assert.deepEqual([...open.blockedBlocks([1, 1])].slice(0, 3), [1, 1, 0]);
});

test("a causal pattern needs no bytes: of fewer queries the last sees every key, of more the first see none", async () => {
  assert.deepEqual(rows(await readOpenKeys({}, {kind: "causal", queries: 2, keys: 4})), ["1110", "1111"]);
  assert.deepEqual(rows(await readOpenKeys({}, {kind: "causal", queries: 3, keys: 2})), ["00", "10", "11"]);
});

test("bits give the same runs", async () => {
  // 2 queries, 3 keys, key by key: query 0 is blocked at key 1, query 1 at keys 0 and 2.
  const bits = new Blob([Uint8Array.of(0b100110)]).stream().pipeThrough(new CompressionStream("deflate"));
  const body = new Uint8Array(await new Response(bits).arrayBuffer());
  const mask = {kind: "bits", queries: 2, keys: 3, at: [0, body.length]};
  assert.deepEqual(rows(await readOpenKeys({body}, mask)), ["101", "010"]);
});
