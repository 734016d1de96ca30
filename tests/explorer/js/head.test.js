import assert from "node:assert/strict";
import {test} from "node:test";

import {Head, belowCut, withoutWeight} from "../../../attention_viz/explorer/static/data/head.js";

// A head of 2 queries and 3 keys, its numbers key by key: query 0 looks 0.2, 0.5, 0.3; query 1 looks 0.6, blocked, 0.4.
const VALUES = [0, 0.2, 0.3, 0.4, 0.5, 0.6, 1];
const head = new Head(Uint16Array.of(1, 5, 4, 0, 2, 3), [1, 1], Uint8Array.of(0, 0, 0, 1, 0, 0), 2, 3, VALUES);
const ALL = {rows: Int32Array.of(0, 1), columns: Int32Array.of(0, 1, 2)};

test("a weight is read by query and key", () => {
  assert.equal(head.at(0, 1), 0.5);
  assert.equal(head.at(1, 0), 0.6);
  assert.ok(head.isBlocked(1, 1));
  assert.ok(!head.isBlocked(0, 1));
});

test("a head without a pattern blocks nothing", () => {
  assert.ok(!new Head(head.weights, head.sums, null, 2, 3, VALUES).isBlocked(1, 1));
});

test("the maximum is that of the rows and columns in sight", () => {
  assert.equal(head.maximum(ALL.rows, ALL.columns), 0.6);
  assert.equal(head.maximum(Int32Array.of(0), Int32Array.of(0, 2)), 0.3);
});

test("a row's sum is the sum that was sent, less what is hidden of it", () => {
  assert.equal(head.sum(0, ALL.columns), 1);
  assert.ok(Math.abs(head.sum(0, Int32Array.of(0, 2)) - 0.5) < 1e-12);
});

test("the strongest cells come heaviest first, and only those that are accepted", () => {
  const strongest = head.strongest(ALL.rows, ALL.columns, 2);
  assert.deepEqual(strongest, [
    {query: 1, key: 0, weight: 0.6},
    {query: 0, key: 1, weight: 0.5},
  ]);
  const others = head.strongest(ALL.rows, ALL.columns, 1, (query, key) => query !== 1 || key !== 0);
  assert.deepEqual(others, [{query: 0, key: 1, weight: 0.5}]);
});

test("of equally strong cells the first query and key come first", () => {
  const even = new Head(Uint16Array.of(1, 1, 1, 1), [1, 1], null, 2, 2, [0, 0.5, 1]);
  const found = even.strongest(Int32Array.of(0, 1), Int32Array.of(0, 1), 3).map(({query, key}) => [query, key]);
  assert.deepEqual(found, [
    [0, 0],
    [0, 1],
    [1, 0],
  ]);
});

test("the pixels of a head are those of its weights", () => {
  assert.deepEqual([...head.sample(ALL.rows, ALL.columns, 3, 2)], [1, 4, 2, 5, 0xffff, 3]);
});

test("a key that an indexer left out says how far below the cut it is", () => {
  const below = belowCut(Uint8Array.of(0, 0, 0, 1, 0, 0), {body: new Uint8Array(Float32Array.of(0.25).buffer)}, [0, 4]);
  const picked = new Head(head.weights, head.sums, head.blocked, 2, 3, VALUES, below);
  assert.equal(picked.leftOut(1, 1), 0.25);
  assert.equal(picked.leftOut(0, 1), null);
  assert.equal(head.leftOut(1, 1), null);
  assert.equal(withoutWeight(picked, 1, 1), "not picked, 0.25 below the cut");
  assert.equal(withoutWeight(head, 1, 1), "blocked");
  assert.equal(withoutWeight(picked, 0, 0), null);
});
