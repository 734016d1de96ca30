import assert from "node:assert/strict";
import {test} from "node:test";

import {
  comparedWith,
  partsOf,
  reasonOf,
  rowsOf,
  sumInWords,
  turnedInWords,
  verdictOf,
} from "../../../attention_viz/explorer/static/why/verdict.js";
import {timesAsLikely} from "../../../attention_viz/explorer/static/why/reading.js";

const header = /** @type {any} */ ({
  own: true,
  units: {query: "word", key: "word"},
  ...{queries: ["the₁", "bank", "the₂", "river"], keys: ["the₁", "bank", "the₂", "river"]},
});

/** Each key's products: word × word, word × place, place × word, place × place. */
const split = /** @type {any} */ ({
  ...{layer: 0, head: 4, query: 1, key: 3, fixed: "", names: ["word", "place"], keys: [0, 1, 2, 3]},
  pairs: [
    [0.2, 1, 0.3, 0.5],
    [-1, 1, 0, 0.6],
    [0.2, 1, 0.3, 0.5],
    [3, 1, 1, 0.6],
  ],
  ...{scores: [2, 0.6, 2, 5.6], weights: [0.03, 0.01, 0.03, 0.93], shared: [0, 0, 0, 0]},
  ...{beside: null, together: null, places: "embedded", softcap: false},
});

test("a key's parts are summed over the query's, and add up to its score", () => {
  const rows = rowsOf(split);
  assert.deepEqual(rows[3].parts, [4, 1.6]);
  for (const {parts, score} of rows) assert.ok(Math.abs(parts[0] + parts[1] - score) < 1e-9);
  assert.equal(sumInWords(rows[3], partsOf(split), "word"), "5.60 = word +4.00, place +1.60");
});

test("the reason is what leads before the other keys, not what is large in all of them", () => {
  assert.equal(reasonOf(2, 0.1, "word", "place"), "for the word, not for its place");
  assert.equal(reasonOf(2, -0.1, "word", "place"), "for the word, not for its place");
  assert.equal(reasonOf(2, 1, "word", "place"), "for the word and for its place");
  assert.equal(reasonOf(2, -1, "word", "place"), "for the word, against its place");
  assert.equal(reasonOf(0.1, 9, "word", "place"), "for its place, not for the word");
  assert.equal(reasonOf(-5, 9, "patch", "place"), "for its place, against the patch");
  assert.equal(reasonOf(-1, -1, "word", "place"), "against both word and place");
  // Every place gives as much.
  const told = verdictOf(header, split);
  assert.deepEqual(told, {
    ...{query: "“bank”", verb: "chooses", key: "“river”", than: "", reason: "for the word, not for its place"},
  });
});

test("a key that isn't the largest is told beside the one that is, and the query itself by that word", () => {
  const told = verdictOf(header, {...split, key: 1});
  assert.deepEqual([told.verb, told.key, told.than], ["prefers", "“river”", "itself"]);
  const [mine, other] = [rowsOf(split)[3], rowsOf(split)[2]];
  const words = "“river” scores 3.60 more than “the₂”: word +3.50, place +0.10.";
  assert.equal(comparedWith(header, mine, other, partsOf(split)), words);
  // Beside one key the reason is of those two alone.
  const pair = verdictOf(header, split, 2);
  assert.deepEqual([pair.key, pair.than, pair.reason], ["“river”", "“the₂”", "for the word, not for its place"]);
  const less = verdictOf(header, {...split, key: 2}, 1);
  assert.deepEqual([less.key, less.than], ["“the₂”", "itself"]);
  const one = {...split, keys: [0], key: 0, query: 0, pairs: [split.pairs[0]], scores: [2], weights: [1], shared: [0]};
  assert.equal(verdictOf(header, one).verb, "has only");
});

test("rotated positions are told by the distance, and a bias for it is part of the score", () => {
  const turned = {
    ...split,
    names: ["word"],
    pairs: [[2], [1], [2], [5.6]],
    scores: [2, 1, 2, 5.6],
    together: [4, 1, 3, 5],
  };
  assert.deepEqual(rowsOf(turned)[0].parts, [4, -2]);
  assert.match(
    turnedInWords(turned, rowsOf(turned)[0]),
    /At one place they would score 4.00; .* over 1 place takes 2.00/,
  );
  assert.match(turnedInWords(turned, rowsOf(turned)[1]), /same place/);
  assert.equal(verdictOf(header, turned).reason, "for the word and for its distance".replace("and for", "and for"));
  const beside = {...split, beside: [-3, -2, -1, 0]};
  assert.deepEqual(partsOf(beside), ["word", "place", "distance"]);
  assert.equal(rowsOf(beside)[0].score, -1);
});

test("a gap of logits is told as odds", () => {
  assert.equal(timesAsLikely(Math.log(2)), "2.0 times as likely");
  assert.equal(timesAsLikely(6.12), "450 times as likely");
  assert.equal(timesAsLikely(-Math.log(3)), "3.0 times less likely");
});
