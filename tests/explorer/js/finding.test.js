import assert from "node:assert/strict";
import {test} from "node:test";

import {findToken} from "../../../attention_viz/explorer/static/data/finding.js";
import {spell} from "../../../attention_viz/explorer/static/data/spelling.js";

const text = ["The", " bank", " 42", " bank", "↵"];
const axisOf = (labels, spelling) => ({
  labels,
  spelling: labels.map(() => spelling),
  spellings: labels.map((label) => spell(label, spelling)),
  count: labels.length,
});
const axis = {...axisOf(text, "text"), spellings: text.map((one) => ({mark: "", text: one}))};

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

test("a word is found where its pieces are, whatever the tokenizer makes of it", () => {
  const bytes = axisOf(
    ["I", "\u0120don", "'t", "\u0120e", "-", "mail", "\u0120\u00f0\u0141", "\u0134", "\u00a9"],
    "byte-level",
  );
  assert.equal(findToken(bytes, "don't", null), 1);
  assert.equal(findToken(bytes, "e-mail", null), 3);
  assert.equal(findToken(bytes, "\u{1f4a9}", null), 6);
  const numbers = axisOf(["\u2581is", "\u25813", ".", "1", "4"], "sentencepiece");
  assert.equal(findToken(numbers, "3.14", null), 1);
  assert.equal(findToken(numbers, "3.15", null), null);
  assert.equal(findToken(axisOf(["un", "##happy"], "wordpiece"), "unhappy", null), 0);
});
