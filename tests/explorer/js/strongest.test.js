import assert from "node:assert/strict";
import {test} from "node:test";

import {Strongest} from "../../../attention_viz/explorer/static/data/strongest.js";

test("the heaviest of many are kept, whatever their order, and of equals the first", () => {
  const found = new Strongest(5);
  const weights = Array.from({length: 1000}, (_, place) => ((place * 617) % 331) / 331);
  weights.forEach((weight, place) => found.add(place, 0, weight));
  const wanted = weights
    .map((weight, query) => ({query, key: 0, weight}))
    .sort((a, b) => b.weight - a.weight || a.query - b.query)
    .slice(0, 5);
  assert.deepEqual(found.sorted(), wanted);
});

test("what another cell has to exceed is known once there are enough, and never too much", () => {
  const found = new Strongest(2);
  found.add(0, 0, 0.5);
  assert.equal(found.least, 0);
  found.add(1, 0, 0.25);
  assert.equal(found.least, 0.25);
  for (let place = 0; place < 200; place++) found.add(2, place, 0.3);
  assert.ok(found.least <= 0.3);
  assert.deepEqual(
    found.sorted().map(({weight}) => weight),
    [0.5, 0.3],
  );
});

test("none are kept where none are wanted", () => {
  const found = new Strongest(0);
  found.add(0, 0, 1);
  assert.deepEqual(found.sorted(), []);
});
