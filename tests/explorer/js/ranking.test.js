import assert from "node:assert/strict";
import {test} from "node:test";

import {rankHeads} from "../../../attention_viz/explorer/static/heads/ranking.js";

const LAYERS = [{heads: 2}, {heads: 3}];
const looks = (weight, blocked = false) => ({at: () => weight, isBlocked: () => blocked});
const places = ({ranked}) => ranked.map(({layer, head}) => [layer, head]);

test("heads are ranked by how much the query looks at the key; of equals the lower layer and head is first", () => {
  const weights = [
    [0.1, 0.7],
    [0.7, 0.2, 0.7],
  ];
  const found = rankHeads(LAYERS, (layer, head) => looks(weights[layer][head]), 0, 1);
  assert.deepEqual(places(found), [
    [0, 1],
    [1, 0],
    [1, 2],
    [1, 1],
    [0, 0],
  ]);
  assert.equal(found.ranked[0].weight, 0.7);
  assert.ok(found.complete);
});

test("the weight is that of the query at the key, not the other way round", () => {
  const asked = [];
  const head = {at: (query, key) => asked.push([query, key]), isBlocked: () => false};
  rankHeads([{heads: 1}], () => head, 4, 9);
  assert.deepEqual(asked, [[4, 9]]);
});

test("heads that may not look there are left out, and those not read yet are told", () => {
  const head = (layer, number) => (layer === 0 ? looks(0.5, number === 0) : null);
  const found = rankHeads(LAYERS, head, 0, 1);
  assert.deepEqual(places(found), [[0, 1]]);
  assert.ok(!found.complete);
});

test("where the cell is blocked everywhere nobody is found, and nothing is missing", () => {
  const found = rankHeads(LAYERS, () => looks(0, true), 0, 1);
  assert.deepEqual(found, {ranked: [], complete: true});
});
