import assert from "node:assert/strict";
import {test} from "node:test";

import {findToken} from "../../../attention_viz/explorer/static/data/finding.js";

const text = ["The", " bank", " 42", " bank", "↵"];
const axis = {spellings: text.map((one) => ({mark: "", text: one})), count: text.length};

test("a position is meant by its number, alone or behind the word that stands there", () => {
  assert.equal(findToken(axis, "3", null), 3);
  assert.equal(findToken(axis, " Bank 3 ", 0), 3);
  assert.equal(findToken(axis, "bank 2", 0), null);
});

test("a word is found after where one stands, and from the beginning again after the end", () => {
  assert.equal(findToken(axis, "BANK", null), 1);
  assert.equal(findToken(axis, "bank", 1), 3);
  assert.equal(findToken(axis, "bank", 3), 1);
});

test("what stands in the box goes on to the next place with its word", () => {
  assert.equal(findToken(axis, "bank 1", 1), 3);
  assert.equal(findToken(axis, "the 0", 0), 0);
});

test("a word that is a number is found where no position has it", () => {
  assert.equal(findToken(axis, "42", 0), 2);
});

test("what isn't there is not found", () => {
  assert.equal(findToken(axis, "river", 0), null);
  assert.equal(findToken(axis, "", 0), null);
  assert.equal(findToken(axis, "99", 0), null);
});
