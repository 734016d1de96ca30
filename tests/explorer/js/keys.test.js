import assert from "node:assert/strict";
import {test} from "node:test";

import {sendChoice, takesChoice} from "../../../attention_viz/explorer/static/hosts/component.js";
import {arrowStep, focusOne, placeByKey} from "../../../attention_viz/explorer/static/parts/element.js";
import {said} from "../../../attention_viz/explorer/static/claim/said.js";

test("arrow keys lead one row or column on, others nowhere", () => {
  assert.deepEqual(["ArrowUp", "ArrowRight", "Home", "toString"].map(arrowStep), [[-1, 0], [0, 1], null, null]);
});

test("along a line keys lead to the neighbours and to both ends, maybe past them", () => {
  const places = ["ArrowLeft", "ArrowRight", "Home", "End", "ArrowUp"].map((key) => placeByKey(key, 0, 5));
  assert.deepEqual(places, [-1, 1, 0, 4, null]);
});

test("of a group one is in the order of the Tab key, and has the focus", () => {
  const order = [];
  const nodes = [0, 1, 2].map((at) => ({
    setAttribute: (_, value) => (order[at] = value),
    focus: () => order.push(`focus ${at}`),
  }));
  focusOne(nodes, nodes[1]);
  assert.deepEqual(order, ["-1", "0", "-1", "focus 1"]);
});

test("an answer to an older choice of the reader's is not taken", () => {
  const sent = [];
  const component = {serial: 0, setStateValue: (name, value) => sent.push([name, value])};
  assert.ok(takesChoice(component, {seen: 4}));
  sendChoice(component, {head: 2});
  assert.deepEqual(sent, [["choice", {head: 2, serial: 5}]]);
  assert.ok(!takesChoice(component, {seen: 4}) && !takesChoice(component, {}));
  assert.ok(takesChoice(component, {seen: 5}));
});

test("a sentence keeps its parts with roles apart, and joins what has none", () => {
  const parts = said`${"At"} ${2} of ${[["a", "key"]]}${["b", "query"]}.`;
  assert.deepEqual(parts, [
    ["At 2 of ", ""],
    ["a", "key"],
    ["b", "query"],
    [".", ""],
  ]);
  assert.deepEqual(said`${["a", "key"]}`, [["a", "key"]]);
});

test("a component built anew numbers its choices on, so that an answer to the one before it is older", () => {
  const [sent, setStateValue] = [[], (_, value) => sent.push(value.serial)];
  const [before, after] = [
    {serial: 0, setStateValue},
    {serial: 0, setStateValue},
  ];
  sendChoice(before, {head: 1});
  sendChoice(after, {head: 2});
  assert.ok(sent[1] > sent[0] && !takesChoice(after, {seen: sent[0]}) && takesChoice(after, {seen: sent[1]}));
});
