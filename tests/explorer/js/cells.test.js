import assert from "node:assert/strict";
import {test} from "node:test";

import {axesOf, headByKey} from "../../../attention_viz/explorer/static/heads/cells.js";

// Layers needn't have as many heads as each other.
const LAYERS = [{heads: 4}, {heads: 2}, {heads: 3}];
const from = (layer, head) => (key) => headByKey(LAYERS, {layer, head}, key);

test("arrow keys lead where the cells stand, and to the last head of a layer that has fewer", () => {
  const key = from(0, 2);
  assert.deepEqual(key("ArrowUp"), {layer: 0, head: 1});
  assert.deepEqual(key("ArrowDown"), {layer: 0, head: 3});
  assert.deepEqual(key("ArrowRight"), {layer: 1, head: 1});
  assert.deepEqual(key("End"), {layer: 2, head: 2});
  assert.deepEqual(from(2, 1)("Home"), {layer: 0, head: 1});
  assert.deepEqual(from(1, 1)("ArrowLeft"), {layer: 0, head: 1});
  assert.deepEqual(key("PageDown"), {layer: 0, head: 3});
  assert.deepEqual(key("PageUp"), {layer: 0, head: 0});
});

test("no key leads outside", () => {
  assert.deepEqual(from(0, 0)("ArrowLeft"), {layer: 0, head: 0});
  assert.deepEqual(from(0, 0)("ArrowUp"), {layer: 0, head: 0});
  assert.deepEqual(from(2, 2)("ArrowRight"), {layer: 2, head: 2});
  assert.deepEqual(from(2, 2)("ArrowDown"), {layer: 2, head: 2});
});

test("layers without heads are passed over", () => {
  const layers = [{heads: 0}, {heads: 2}, {heads: 0}, {heads: 1}];
  assert.deepEqual(headByKey(layers, {layer: 1, head: 1}, "ArrowRight"), {layer: 3, head: 0});
  assert.deepEqual(headByKey(layers, {layer: 3, head: 0}, "Home"), {layer: 1, head: 0});
  assert.deepEqual(headByKey(layers, {layer: 1, head: 0}, "ArrowLeft"), {layer: 1, head: 0});
});

test("other keys lead nowhere", () => {
  assert.equal(from(0, 0)("a"), null);
  assert.equal(from(0, 0)("Enter"), null);
});

test("the title says which way layers and heads go", () => {
  assert.equal(axesOf(), "head \u2193 layer \u2192");
  assert.equal(axesOf(true), "layer \u2192");
});
