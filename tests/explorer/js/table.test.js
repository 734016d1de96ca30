import assert from "node:assert/strict";
import {test} from "node:test";

import {tableOf} from "../../../attention_viz/explorer/static/data/table.js";
import {positions, readAxis} from "../../../attention_viz/explorer/static/data/tokens.js";

const axisOf = (labels, more = {}) => readAxis({labels, special: [], padding: [], ...more});
const head = {at: (query, key) => (query + key) / 10, isBlocked: (query, key) => key > query};

function shown(axis) {
  const places = positions(axis, false);
  return {stream: {queries: axis, keys: axis}, rows: places, columns: places};
}

const texts = ({rows}) => rows.map((cells) => cells.map(({text}) => text));

test("a small head is told whole: queries down, keys across, blocked cells by that word", () => {
  const table = tableOf(head, shown(axisOf(["The", "##m", "\n"])), "Layer 1", null);
  assert.deepEqual(table.titles, ["Query \\ key", "The", "\u203fm", "\u21b5"]);
  assert.deepEqual(texts(table), [
    ["The", "0.000", "blocked", "blocked"],
    ["\u203fm", "0.100", "0.200", "blocked"],
    ["\u21b5", "0.200", "0.300", "0.400"],
  ]);
  assert.deepEqual(
    table.rows[0].map(({heading}) => heading),
    [true, false, false, false],
  );
  assert.match(table.caption[0].text, /^Layer 1: how much each query \(row\) attends to each key \(column\)$/);
});

test("of a large head one query's row is told, with positions, since tokens repeat", () => {
  const labels = Array.from({length: 41}, () => "go");
  const table = tableOf(head, shown(axisOf(labels)), "Layer 1", 3);
  assert.deepEqual(table.titles, ["Position", "Key", "Weight"]);
  assert.equal(table.rows.length, 41);
  assert.deepEqual(texts(table)[3], ["3", "go", "0.600"]);
  assert.deepEqual(texts(table)[4], ["4", "go", "blocked"]);
  assert.deepEqual(table.caption[1], {text: "go (occurrence 4)", token: true});
});

test("until a query is chosen the row is that of the first token in sight", () => {
  const axis = axisOf(
    Array.from({length: 42}, (_, place) => `w${place}`),
    {special: [0]},
  );
  const places = positions(axis, true);
  const table = tableOf(head, {stream: {queries: axis, keys: axis}, rows: places, columns: places}, "Layer 1", null);
  assert.equal(table.caption[1].text, "w1");
  assert.equal(table.rows.length, 41);
});

test("the caption says which positions are which sentence's", () => {
  const axis = axisOf(["a", "b", "c"], {
    sentences: [
      [0, 1],
      [2, 2],
    ],
  });
  const {caption} = tableOf(head, shown(axis), "Layer 1", null);
  assert.match(caption[0].text, /; first sentence: positions 0 to 1; second sentence: positions 2 to 2$/);
});
