import {test} from "node:test";
import assert from "node:assert/strict";

import {asideOf, isOfAllRows, ofPieces} from "../../../attention_viz/explorer/static/claim/aside.js";

const texts = ["[CLS]", "bank", "river", "[SEP]"];
const axis = {
  names: texts,
  dimmed: Uint8Array.of(1, 0, 0, 1),
  count: 4,
  special: true,
  padding: false,
  place: null,
};
const aside = (row, pair, more = {}) => {
  const keys = {...axis, ...more};
  const head = {
    at: (_, key) => row[key],
    isBlocked: () => false,
    strongest: () => [row.map((weight, key) => ({query: 1, key, weight})).sort((a, b) => b.weight - a.weight)[0]],
  };
  return asideOf({head, stream: {name: "encoder", own: true, queries: keys, keys}}, pair);
};

test("where little of a row is told, it is said that most of it goes to special tokens, and how much", () => {
  assert.equal(aside([0.21, 0.04, 0, 0.75], {query: 1, key: 1}), "most, 0.96, goes to special tokens");
  const padded = {padding: true};
  assert.equal(
    aside([0.21, 0.04, 0, 0.75], {query: 1, key: 1}, padded),
    "most, 0.96, goes to special tokens and padding",
  );
});

test("or to one other word", () => {
  assert.equal(aside([0.1, 0.8, 0.05, 0.05], {query: 1, key: 2}), "most, 0.80, goes to \u201cbank\u201d");
  const picture = {place: [null, [0, 3], [0, 4], null]};
  assert.equal(aside([0.1, 0.8, 0.05, 0.05], {query: 1, key: 2}, picture), "most, 0.80, goes to patch 0, 3");
});

test("nothing is added where the told weight is no small part, or no other is most", () => {
  assert.equal(aside([0.3, 0.02, 0.38, 0.3], {query: 1, key: 2}), "");
  assert.equal(aside([0.2, 0.45, 0.2, 0.15], {query: 1, key: 2}), "");
});

test("a special token that a word is told by is said to be none of its text", () => {
  assert.equal(aside([0.9, 0, 0, 0.1], {query: 1, key: 0}), "not a word of the text");
  assert.equal(aside([0.9, 0, 0, 0.1], {query: 0, key: 3}), "");
  assert.equal(asideOf({head: null, stream: {queries: axis, keys: axis}}, {query: 1, key: 0}), "");
});

test("of a number between whole words, the pair's own is told where it is another", () => {
  const head = {at: () => 0.99};
  const found = {kind: "repeat", query: 3, key: 1, strength: 0.97};
  const pair = {query: 3, key: 1};
  assert.equal(ofPieces({head}, pair, found), 0.99);
  assert.equal(ofPieces({head}, pair, {...found, strength: 0.9899}), null);
  assert.equal(ofPieces({head}, pair, {...found, kind: "induction"}), null, "its number is a mean over the text");
  assert.equal(ofPieces({head}, {query: 3, key: 2}, found), null, "another pair than the one that was found");
  assert.equal(ofPieces({head}, pair, undefined), null);
  assert.equal(ofPieces({head: null}, pair, found), null);
});

test("a sentence about all rows of a head is told from one about two words", () => {
  const found = (kind, looking) => ({
    kind,
    parts: [
      [looking, "query"],
      [" looks at ", ""],
      ["it", "key"],
    ],
  });
  assert.ok(isOfAllRows(found("previous", "Each word")));
  assert.ok(isOfAllRows(found("induction", "Words that come again")));
  assert.ok(!isOfAllRows(found("induction", "\u201cfrog\u201d")));
  assert.ok(!isOfAllRows(found("link", "\u201cbank\u201d")));
  assert.ok(!isOfAllRows(found("region", "[CLS]")));
});
