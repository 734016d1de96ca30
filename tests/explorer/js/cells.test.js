import assert from "node:assert/strict";
import {test} from "node:test";

import {headByKey, headSize, mostHeads} from "../../../attention_viz/explorer/static/parts/cells.js";

// Layers needn't have as many heads as each other.
const LAYERS = [{heads: 4}, {heads: 2}, {heads: 3}];
const from = (layer, head) => (key) => headByKey(LAYERS, {layer, head}, key);

test("arrow keys lead to the next head, and to the last one of a layer that has fewer", () => {
  const key = from(0, 3);
  assert.deepEqual(key("ArrowLeft"), {layer: 0, head: 2});
  assert.deepEqual(key("ArrowDown"), {layer: 1, head: 1});
  assert.deepEqual(key("PageDown"), {layer: 2, head: 2});
  assert.deepEqual(key("Home"), {layer: 0, head: 0});
});

test("no key leads outside", () => {
  const key = from(0, 3);
  assert.deepEqual(key("ArrowUp"), {layer: 0, head: 3});
  assert.deepEqual(key("ArrowRight"), {layer: 0, head: 3});
  assert.deepEqual(from(2, 0)("ArrowDown"), {layer: 2, head: 0});
  assert.deepEqual(from(2, 0)("ArrowLeft"), {layer: 2, head: 0});
});

test("other keys lead nowhere", () => {
  assert.equal(from(0, 0)("a"), null);
  assert.equal(from(0, 0)("Enter"), null);
});

test("heads are as large as their place allows, and never too small to be hit", () => {
  assert.equal(mostHeads(LAYERS), 4);
  assert.equal(headSize(LAYERS, 26 + 4 * 33, 1000), 30);
  assert.equal(headSize(LAYERS, 1000, 46 + 3 * 23), 20);
  assert.equal(headSize(LAYERS, 10, 10), 12);
  assert.equal(headSize(LAYERS, 5000, 5000), 64);
});
