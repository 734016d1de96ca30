import assert from "node:assert/strict";
import {test} from "node:test";

import {axesOf, headByKey} from "../../../attention_viz/explorer/static/heads/cells.js";

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

test("where the grid is turned, keys lead where the cells stand", () => {
  const key = (name) => headByKey(LAYERS, {layer: 1, head: 0}, name, true);
  assert.deepEqual(key("ArrowDown"), {layer: 1, head: 1});
  assert.deepEqual(key("ArrowRight"), {layer: 2, head: 0});
  assert.deepEqual(key("ArrowLeft"), {layer: 0, head: 0});
  assert.deepEqual(key("End"), {layer: 2, head: 0});
  assert.deepEqual(key("PageDown"), {layer: 1, head: 1});
});

test("the title says which way layers and heads go", () => {
  assert.equal(axesOf({turned: false}), "layer \u2193 head \u2192");
  assert.equal(axesOf({turned: true}), "head \u2193 layer \u2192");
  assert.equal(axesOf({turned: true}, true), "layer \u2192");
});
