// Which of several equal words is meant.

import assert from "node:assert/strict";
import {test} from "node:test";

import {ordinal, whichOf} from "../../../attention_viz/explorer/static/claim/ordinal.js";

test("numbers count as people say them", () => {
  const said = [1, 2, 10, 11, 12, 13, 21, 22, 23, 52, 111, 113, 121].map(ordinal);
  const small = ["first", "second", "tenth", "11th", "12th", "13th"];
  assert.deepEqual(said, [...small, "21st", "22nd", "23rd", "52nd", "111th", "113th", "121st"]);
});

test("a word is told apart only from its equals", () => {
  assert.equal(whichOf(["the", "cat", "the"], 1), "");
  assert.equal(whichOf(["the", "cat", "the"], 2), "the second ");
  assert.equal(whichOf(["The", "cat", "the", "the"], 2), "the second ");
});
