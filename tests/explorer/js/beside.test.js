import assert from "node:assert/strict";
import {test} from "node:test";

import {patchesOf} from "../../../attention_viz/explorer/static/seen/patches.js";
import {lightLine, lookedAt, lookedLine, regionAt} from "../../../attention_viz/explorer/static/seen/chosen.js";
import {tellLookers, tellPatch} from "../../../attention_viz/explorer/static/seen/telling.js";

// A first token, two rows of two patches, and two words after them.
const axis = {
  labels: ["<s>", "0,0", "0,1", "1,0", "1,1", "what", "red"],
  names: ["<s>", "0,0", "0,1", "1,0", "1,1", "what", "red"],
  place: [null, [0, 0], [0, 1], [1, 0], [1, 1], null, null],
  dimmed: Uint8Array.of(1, 0, 0, 0, 0, 0, 0),
  count: 7,
};
const patches = patchesOf(axis);
const rows = {5: [0.3, 0.1, 0, 0, 0.1, 0.5, 0], 6: [0, 0.5, 0.4, 0.05, 0, 0.05, 0]};
const head = {at: (query, key) => rows[query]?.[key] ?? 0};
const plain = {overQuery: null, overKey: null, direction: "to"};

function view(state, pair = {query: 6, key: 1}) {
  return {store: {state: {...plain, ...state}}, now: {head, pair, stream: {queries: axis, keys: axis}}};
}

const close = (found, wanted) =>
  found.forEach((one, at) => assert.ok(Math.abs(one - wanted[at]) < 1e-6, `${at}: ${one}`));
const text = (parts) => parts.map(([part]) => part).join("");

test("words beside patches make a joint view; a first token alone doesn't", () => {
  assert.equal(patches.joint, true);
  assert.equal(patchesOf({...axis, dimmed: Uint8Array.of(1, 0, 0, 0, 0, 1, 1)}).joint, false);
});

test("a word looks, and a patch that is pointed at is looked at, whatever was chosen for a picture alone", () => {
  assert.deepEqual(lookedAt(view({}), patches), {position: 6, direction: "from"});
  assert.deepEqual(lookedAt(view({overQuery: 5}), patches), {position: 5, direction: "from"});
  assert.deepEqual(lookedAt(view({overKey: 2}), patches), {position: 2, direction: "to"});
  assert.deepEqual(lookedAt(view({overQuery: 3}), {joint: false}), {position: 3, direction: "to"});
});

test("a patch means the region that the kept word looks at, where it lies in one", () => {
  assert.deepEqual(regionAt(view({}), patches, 2), [0, 1]);
  assert.deepEqual(regionAt(view({}), patches, 4), [3]);
  assert.deepEqual(regionAt(view({}, {query: 3, key: 1}), patches, 2), [1]);
});

test("each word's number is what it gives to the whole region", () => {
  const line = lookedLine(view({overKey: 2}), patches);
  close([line[5], line[6]], [0.1, 0.9]);
  close(lightLine(view({overKey: 2}), patches), [1, 1, 0, 0]);
  close(lightLine(view({overQuery: 6}), patches), [0.5, 0.4, 0.05, 0]);
});

test("the sentence names words in quotes, and how far a region has more than its area", () => {
  const there = {at: (_, key) => [0, 0.9, 0, 0, 0, 0.1, 0][key]};
  const one = "“red” attends to one patch at the upper left: 0.90";
  assert.equal(text(tellPatch(there, 6, "from", patches, axis).said), one);
  assert.equal(text(tellPatch(head, 5, "from", patches, axis).said), "“what” attends to itself: 0.50");
  const told = tellLookers(lookedLine(view({overKey: 2}), patches), patches, axis);
  assert.equal(text(told), "Words that attend to this part of the image: “red” 0.90, “what” 0.10");
  assert.equal(text(tellLookers(new Float32Array(7), patches, axis)).slice(0, 7), "No word");
});
