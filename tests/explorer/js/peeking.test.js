import assert from "node:assert/strict";
import {test} from "node:test";

import {largestKey, peekPhrase, readHeadRows} from "../../../attention_viz/explorer/static/compare/peeking.js";

const encoded = (numbers) => Buffer.from(Float32Array.from(numbers).buffer).toString("base64");

test("the rows of all heads are read side by side, the first text's before the second's", () => {
  // Two heads over three keys; the second text lacks the last key.
  const rows = readHeadRows(encoded([0.5, 0.25, 0.25, 1, 0, 0, 0.75, 0.25, NaN, 0, 1, NaN]), 7, 3);
  assert.equal(rows.query, 7);
  const [one, other] = rows.rowsOf(1);
  assert.deepEqual([...one], [1, 0, 0]);
  assert.deepEqual([...other].slice(0, 2), [0, 1]);
  assert.ok(Number.isNaN(other[2]));
  assert.equal(readHeadRows("", 0, 3), null);
});

test("the largest key is the one with the largest size, whatever is absent or blocked", () => {
  assert.equal(largestKey(Float32Array.from([NaN, 0.2, Infinity, -0.6, 0.5])), 3);
});

test("a preview names what the query looks at most in each text", () => {
  const header = {
    queries: null,
    keys: [
      ["bank", "bank"],
      ["river", "city"],
      ["old", null],
    ],
    where: "With “city”",
  };
  const words = (at, weights) =>
    peekPhrase(header, 0, at, weights)
      .map(([text]) => text)
      .join("");
  assert.equal(words([1, 1], [0.5, 0.25]), "bank → river: 0.50. With “city” → city: 0.25");
  assert.equal(words([2, 0], [0.5, 1]), "bank → old: 0.50. With “city” → bank: 1.00");
  assert.match(words([0, 0], [0.5, NaN]), /no row/u);
});
