import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {begins, placeInWords, positions, readAxis} from "../../../attention_viz/explorer/static/data/tokens.js";

const axisOf = (labels, more = {}) => readAxis({labels, special: [], padding: [], ...more});

test("repeated tokens are counted in any case, others stay as they are", () => {
  const axis = axisOf(["The", "cat", "the", "##e", "e"], {spelling: "wordpiece"});
  assert.deepEqual(axis.names, ["The\u2081", "cat", "the\u2082", "\u203fe\u2081", "e\u2082"]);
  assert.deepEqual(axis.spoken.slice(0, 3), ["The (occurrence 1)", "cat", "the (occurrence 2)"]);
  assert.deepEqual([...axis.occurrences], [1, 0, 2, 1, 2]);
  assert.ok(axis.repeats);
});

test("each token is written as its tokenizer spells it", () => {
  const labels = ["<s>", "\u0120Mary", "\u010a", "\u00c3"];
  const axis = axisOf(labels, {spelling: ["text", "byte-level", "byte-level", "byte-level"]});
  assert.deepEqual(axis.shown, ["<s>", "\u00b7Mary", "\u21b5", "\u27e8C3\u27e9"]);
  assert.deepEqual(axis.names, ["<s>", "Mary", "\u21b5", "\u27e8C3\u27e9"]);
  assert.deepEqual(axis.labels, labels);
  // A space before a word says nothing of it; that a piece goes on with one does.
  assert.deepEqual(axisOf(["bank", "##e"], {spelling: "wordpiece"}).names, ["bank", "\u203fe"]);
  assert.deepEqual(axisOf(["##", "###"], {spelling: "byte-level"}).shown, ["##", "###"]);
});

test("special tokens and padding are dimmed, and can be left out unless nothing would be left", () => {
  const axis = axisOf(["[CLS]", "a", "[PAD]"], {special: [0], padding: [2]});
  assert.deepEqual([...axis.dimmed], [1, 0, 1]);
  assert.deepEqual([...positions(axis, true)], [1]);
  assert.deepEqual([...positions(axis, false)], [0, 1, 2]);
  assert.deepEqual([...positions(axisOf(["[CLS]"], {special: [0]}), true)], [0]);
  assert.equal(axis.spoken[2], "[PAD] (padding)");
});

test("special tokens and the signs that Python names are no words", () => {
  const axis = axisOf(["[CLS]", "\u{1f600}", "\u2026", "7"], {special: [0], signs: [2]});
  assert.deepEqual([...axis.words], [0, 1, 0, 1]);
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

test("a patch is called by its row and column from 0, a frame by its seconds, and a word by neither", () => {
  const place = [null, [15, 4], [1.2]];
  assert.deepEqual(
    place.map((_, at) => placeInWords({place}, at)),
    [null, "patch 15, 4", "1.20 s"],
  );
  assert.equal(placeInWords({place: null}, 0), null);
});

test("what stands in a picture or a sound is named and spoken of by its place", () => {
  const picture = axisOf(["[CLS]", "15,4", "0,0"], {special: [0], place: [null, [15, 4], [0, 0]]});
  assert.deepEqual(picture.names, ["[CLS]", "patch 15, 4", "patch 0, 0"]);
  assert.deepEqual(picture.spoken, picture.names);
  const sound = axisOf(["0.00 s", "1.20 s"], {spelling: "text", place: [[0], [1.2]]});
  assert.deepEqual(sound.names, ["0.00 s", "1.20 s"]);
  assert.deepEqual(sound.shown, sound.names);
});

test("a slot is called by its whole name, beside its short label", () => {
  const axis = readAxis({
    labels: ["query 0", "query 1", "the"],
    named: ["object query 0", "object query 1", null],
    spelling: "text",
    special: [],
    padding: [],
  });
  assert.deepEqual(axis.names, ["object query 0", "object query 1", "the"]);
  assert.deepEqual(axis.shown.slice(0, 2), ["query 0", "query 1"]);
  assert.equal(axis.spoken[1], "object query 1");
});

test("a token with bytes of a character is named with it, half a character as that", () => {
  const labels = ["\u00e0\u00b8", "\u0123", "\u0120b", "\u00e0\u00b8"];
  const axis = axisOf(labels, {
    spelling: "byte-level",
    characters: [
      ["\u0e01", 0, [2, 1]],
      ["", 3, [2]],
    ],
  });
  assert.deepEqual(axis.names, ["\u0e01\u27e8E0 B8\u27e9", "\u0e01\u27e881\u27e9", "b", "\u27e8E0 B8\u27e9"]);
  assert.deepEqual(axis.spoken, [
    "\u0e01, bytes 1 to 2 of 3",
    "\u0e01, byte 3 of 3",
    "b",
    "part of a character, \u27e8E0 B8\u27e9",
  ]);
});

test("a text runs from right to left if most of its letters do, whatever its special tokens", () => {
  const arabic = "\u0645\u0631";
  assert.ok(axisOf(["[CLS]", "1", "a", arabic], {special: [0]}).fromTheRight);
  assert.ok(!axisOf([arabic, "bank"]).fromTheRight);
  // Two bytes of a letter in two tokens, after a Latin letter: the letter counts, the signs for the bytes don't.
  assert.ok(axisOf(["a", "\u00d9", "\u0125", "\u00d9\u0127"], {spelling: "byte-level"}).fromTheRight);
  assert.ok(!axisOf(["1", "."]).fromTheRight);
});

test("a word from right to left is isolated with its mark and its number", () => {
  const labels = ["\u0645\u0631", "##\u0629", "\u0645\u0631", "bank"];
  const axis = axisOf(labels, {spelling: "wordpiece"});
  assert.deepEqual(axis.names, [
    "\u2068\u0645\u0631\u2081\u2069",
    "\u2068\u203f\u0629\u2069",
    "\u2068\u0645\u0631\u2082\u2069",
    "bank",
  ]);
  assert.equal(axis.shown[1], "\u2068\u203f\u0629\u2069");
  assert.equal(axis.numbered[2], "\u2068\u0645\u0631\u2082\u2069");
});

test("Python names and numbers every token in the same way", () => {
  const rows = JSON.parse(readFileSync(`${process.env["ATTENTION_VIZ_FIXTURES"]}/names.json`, "utf8"));
  assert.ok(rows.length > 10);
  for (const {axis: packed, names, numbered, occurrences} of rows) {
    const axis = readAxis(packed);
    assert.deepEqual(axis.names, names);
    assert.deepEqual(axis.numbered, numbered);
    assert.deepEqual([...axis.occurrences], occurrences);
  }
});
