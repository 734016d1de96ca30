import assert from "node:assert/strict";
import {test} from "node:test";

import {depthOf, looksAt, meaningOf, signed, tiny, wordAt} from "../../../attention_viz/explorer/static/why/reading.js";

test("numbers have a sign, but for what is next to nothing", () => {
  assert.equal(signed(2.864), "+2.86");
  assert.equal(signed(-1.074), "−1.07");
  assert.equal(signed(-0.004), "0.00");
  assert.equal(tiny(-2.2e-7), "2×10⁻⁷");
  assert.equal(tiny(0), "0");
});

test("a word that stands in the text twice is told apart", () => {
  const words = ["John", "and", "John"];
  assert.equal(wordAt(words, 1), "“and”");
  assert.equal(wordAt(words, 2), "the second “John”");
  assert.equal(
    looksAt(
      [
        [0, 0.16, 0],
        [1, 0.04, 0],
        [2, 0.74, 0],
      ],
      words,
    ),
    "second “John” .74 · first “John” .16",
  );
});

test("what is missing without a head is told beside what it wrote", () => {
  assert.match(meaningOf(2.86, 3.04), /^Confirmed/);
  assert.match(meaningOf(0.82, -0.04), /^Later layers make up/);
  assert.match(meaningOf(-0.26, 1.11), /^It acts through others/);
  assert.match(meaningOf(1.0, 1.6), /^It also acts/);
  assert.match(meaningOf(0.05, 0.02), /^Next to nothing/);
});

test("colours deepen by roots up to the fullest", () => {
  assert.equal(depthOf(0, 2), 0);
  assert.equal(depthOf(-0.5, 2), 0.5);
  assert.equal(depthOf(9, 2), 1);
  assert.equal(depthOf(1, 0), 0);
});
