import assert from "node:assert/strict";
import {test} from "node:test";

import {begins, positions, readAxis, spelled, visible} from "../../../attention_viz/explorer/static/data/tokens.js";

const axisOf = (labels, more = {}) => readAxis({labels, special: [], padding: [], ...more});

test("the tokenizer's marks become light signs before the text", () => {
  assert.deepEqual(spelled("\u0120bank"), {mark: "\u00b7", text: "bank"});
  assert.deepEqual(spelled("\u2581bank"), {mark: "\u00b7", text: "bank"});
  assert.deepEqual(spelled("##ing"), {mark: "\u203f", text: "ing"});
  assert.deepEqual(spelled("##"), {mark: "", text: "##"});
});

test("nothing is invisible, and nothing turns the direction of what follows", () => {
  assert.equal(visible(""), "\u2205");
  assert.equal(visible("\n"), "\u21b5");
  assert.equal(visible("\u010a"), "\u21b5");
  assert.equal(visible("\u0007"), "\u2407");
  assert.equal(visible("\u0085"), "\u27e8U+0085\u27e9");
  assert.equal(visible("\u202enirts"), "\u27e8U+202E\u27e9nirts");
  assert.equal(visible("\u200d"), "\u27e8U+200D\u27e9");
  assert.equal(visible("  a "), "\u2423\u2423a\u2423");
  assert.equal(visible("\u0301x"), "\u25cc\u0301x");
});

test("joiners within a sign stay, so that a family stays one", () => {
  assert.equal(visible("👩\u200d👩\u200d👧"), "👩\u200d👩\u200d👧");
});

test("repeated tokens are told apart by their positions, others stay as they are", () => {
  const axis = axisOf(["the", "cat", "the"]);
  assert.deepEqual(axis.names, ["the\u2080", "cat", "the\u2082"]);
  assert.deepEqual(axis.spoken, ["the (position 0)", "cat", "the (position 2)"]);
  assert.ok(axis.repeats);
});

test("special tokens and padding are dimmed, and can be left out unless nothing would be left", () => {
  const axis = axisOf(["[CLS]", "a", "[PAD]"], {special: [0], padding: [2]});
  assert.deepEqual([...axis.dimmed], [1, 0, 1]);
  assert.deepEqual([...positions(axis, true)], [1]);
  assert.deepEqual([...positions(axis, false)], [0, 1, 2]);
  assert.deepEqual([...positions(axisOf(["[CLS]"], {special: [0]}), true)], [0]);
  assert.equal(axis.spoken[2], "[PAD] (padding)");
});

test("the second sentence and the model's own words have a beginning", () => {
  const pair = axisOf(["a", "b", "c"], {sentences: [[0], [1, 2]]});
  assert.deepEqual(
    [0, 1, 2].map((place) => begins(pair, place)),
    [false, true, false],
  );
  const own = axisOf(["a", "b", "c"], {generated: [2]});
  assert.deepEqual(
    [0, 1, 2].map((place) => begins(own, place)),
    [false, false, true],
  );
});
