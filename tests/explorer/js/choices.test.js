import assert from "node:assert/strict";
import {test} from "node:test";

import {reorderings, strongestTwo} from "../../../attention_viz/explorer/static/crossing/choices.js";

test("the two source words that a row gives most to are among the words alone", () => {
  const head = {at: (query, key) => [0.1, 0.6, 0.1, 0.2][key] + query};
  assert.deepEqual(strongestTwo(head, 0, [0, 2, 3]), {key: 3, weight: 0.2, next: {key: 0, weight: 0.1}});
  assert.deepEqual(strongestTwo(head, 0, [2]), {key: 2, weight: 0.1, next: null});
});

test("words change places where neighbours come from the other order, and their head is sure of both", () => {
  const from = (keys, weight = 0.9) => keys.map((key) => ({key, weight}));
  assert.deepEqual(reorderings(from([0, 2, 1, 3, 4, 6, 5])), [
    [1, 2],
    [5, 6],
  ]);
  assert.deepEqual(reorderings(from([0, 3, 2, 1])), [[1, 3]]);
  assert.deepEqual(reorderings(from([0, 1, 1, 2])), []);
  assert.deepEqual(reorderings([...from([2]), ...from([1], 0.4)]), []);
});
