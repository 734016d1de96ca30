import assert from "node:assert/strict";
import {test} from "node:test";

import {sample} from "../../../attention_viz/explorer/static/data/raster.js";

const BLOCKED = 0xffff;
// (key, query): 2 queries, 3 keys.
const head = {weights: Uint16Array.of(10, 20, 30, 40, 50, 60), blocked: null, queries: 2};
const [ROWS, COLUMNS] = [Int32Array.of(0, 1), Int32Array.of(0, 1, 2)];

test("one pixel a cell: rows are queries, columns are keys", () => {
  assert.deepEqual([...sample(head, ROWS, COLUMNS, 3, 2)], [10, 30, 50, 20, 40, 60]);
});

test("a cell fills all pixels that lie over it", () => {
  const first = Int32Array.of(0);
  assert.deepEqual([...sample(head, first, Int32Array.of(0, 2), 4, 1)], [10, 10, 50, 50]);
});

test("cells that share a pixel give half of their maximum and half of their mean", () => {
  assert.deepEqual([...sample(head, ROWS, COLUMNS, 1, 1)], [Math.round((60 + 35) / 2)]);
});

test("a pixel is blocked where all of its cells are, and blocked cells count for nothing else", () => {
  const blocked = {...head, blocked: Uint8Array.of(0, 1, 0, 1, 1, 1)};
  assert.deepEqual([...sample(blocked, ROWS, COLUMNS, 3, 2)], [10, 30, BLOCKED, BLOCKED, BLOCKED, BLOCKED]);
  assert.deepEqual([...sample(blocked, ROWS, COLUMNS, 1, 1)], [Math.round((30 + 20) / 2)]);
});

test("rows and columns that are hidden are not drawn", () => {
  assert.deepEqual([...sample(head, Int32Array.of(1), Int32Array.of(0, 2), 2, 1)], [20, 60]);
});
