import assert from "node:assert/strict";
import test from "node:test";

import {
  evenShares,
  giveShare,
  nameMost,
  readShares,
  toPercents,
} from "../../../attention_viz/explorer/static/lesson/guess.js";

/** @param {readonly number[]} shares */
const total = (shares) => shares.reduce((sum, one) => sum + one, 0);

test("a guess always makes 1, whatever is pulled", () => {
  let shares = evenShares(5);
  for (const [at, share] of /** @type {[number, number][]} */ ([
    [0, 0.5],
    [3, 2],
    [3, -1],
    [2, 1],
    [1, 0.25],
  ])) {
    shares = giveShare(shares, at, share);
    assert.ok(Math.abs(total(shares) - 1) < 1e-9);
    assert.equal(shares[at], Math.min(1, Math.max(0, share)));
    assert.ok(shares.every((one) => one >= 0));
  }
  assert.deepEqual(giveShare([1], 0, 0.2), [1]);
});

test("the others keep their proportions", () => {
  const shares = giveShare([0.2, 0.2, 0.6], 0, 0.6);
  assert.ok(Math.abs((shares[2] ?? 0) / (shares[1] ?? 0) - 3) < 1e-9);
});

test("what is named takes most, of two as of many", () => {
  for (const count of [1, 2, 9]) {
    const shares = nameMost(count, count - 1);
    assert.equal(shares.indexOf(Math.max(...shares)), count - 1);
    assert.ok(Math.abs(total(shares) - 1) < 1e-9);
  }
});

test("percents make 100", () => {
  assert.deepEqual(toPercents([1 / 3, 1 / 3, 1 / 3]), [34, 33, 33]);
  for (const count of [1, 3, 7, 24]) assert.equal(total(toPercents(evenShares(count))), 100);
});

test("a guess in the address is read as shares", () => {
  assert.deepEqual(readShares("10.60.30", 3, true), [0.1, 0.6, 0.3]);
  assert.deepEqual(readShares("1", 3, false), [0, 1, 0]);
});
