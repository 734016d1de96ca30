import assert from "node:assert/strict";
import {test} from "node:test";

import {
  MixedHead,
  SmallMixedHead,
  carried,
  rowSums,
  shareOfSize,
  signedPlace,
  significant,
} from "../../../attention_viz/explorer/static/data/mixing.js";
import {SCALES, colourTable, pixel, twoDigits} from "../../../attention_viz/explorer/static/data/scale.js";

// Two queries and three keys, of which the first query doesn't reach the last.
const CELLS = Float32Array.of(0.5, -0.25, 0, 0.125, -4, 2);
const BLOCKED = Uint8Array.of(0, 0, 0, 0, 1, 0);
const head = new MixedHead(CELLS, BLOCKED, 2, 3, {lengths: Float32Array.of(2, 3, 0.5)});
const ALL = {rows: Int32Array.of(0, 1), columns: Int32Array.of(0, 1, 2)};

test("weights keep their signs, and their sums are those of the row", () => {
  assert.equal(head.at(1, 1), -4);
  assert.equal(head.sum(1, ALL.columns), -1.875);
  assert.equal(head.size(1, ALL.columns), 6.125);
  assert.equal(rowSums(head, 1, ALL.columns), "Σ −1.88 · Σ|·| 6.13");
  assert.equal(carried(head, 1, 1), "takes away 4.00");
  assert.equal(carried(head, 1, 2), "carries 2.00");
  assert.equal(shareOfSize(head, 1, 1, ALL.columns), "65\u202f% of the row’s size");
});

test("the strongest cells are those of the largest size, whatever the sign", () => {
  assert.deepEqual(head.strongest(ALL.rows, ALL.columns, 2), [
    {query: 1, key: 1, weight: -4},
    {query: 1, key: 2, weight: 2},
  ]);
});

test("what arrives is the size of the weight times the length of the value", () => {
  assert.deepEqual([...head.arrived.cells], [1, 0.75, 0, 0.25, 12, 1]);
  assert.equal(head.arrived.arrived, head.arrived);
  assert.equal(carried(head.arrived, 1, 1), "arrives with length 12.0");
});

test("colours are even steps of the logarithm on both sides of nothing, four decades from the largest", () => {
  const near = (one, other) => assert.ok(Math.abs(one - other) < 1e-12, `${one} ${other}`);
  near(signedPlace(-4, 4), -1);
  near(signedPlace(0.04, 4), 0.5);
  near(signedPlace(0.0004, 4), 0);
  near(signedPlace(1e-9, 4), 0);
  near(SCALES.signed.place(0, 4), 0.5);
});

test("a pixel over several cells has the sign of the largest, never their sum", () => {
  const [pixels, values] = [head.sample(ALL.rows, ALL.columns, 1, 1), head.values];
  assert.equal(values[pixels[0]], -4);
  const each = [...head.sample(ALL.rows, ALL.columns, 3, 2)];
  assert.equal(each[2], 0xffff);
  assert.ok(Math.abs(values[each[3]] / 0.125 - 1) < 0.005);
  const ramp = [
    [0, 0, 255],
    [255, 255, 255],
    [255, 0, 0],
  ];
  assert.equal(colourTable(values, "signed", head.maximum(), ramp)[each[4]], pixel([0, 0, 255]));
});

test("a number has three significant digits at any size", () => {
  assert.deepEqual([0, 0.031449, -0.0315, 1234.5, 99.96, 1.2e-7, -3.456e8].map(significant), [
    "0",
    "0.0314",
    "−0.0315",
    "1230",
    "100",
    "1.20 × 10⁻⁷",
    "−3.46 × 10⁸",
  ]);
  assert.deepEqual([-0.104, 1.25, 12, 0.00004].map(twoDigits), ["−.10", "1.3", "12", "4e-5"]);
});

test("a head in small keeps sizes on a logarithmic scale, signs, and where nothing can arrive", () => {
  const codes = Int8Array.of(127, -128, -64, 0);
  const small = new SmallMixedHead(codes, 2, [2, 2], Int8Array.of(127, -128, 127, 64), 3);
  assert.equal(small.at(0, 0), 2);
  assert.ok(Math.abs(small.at(1, 0) / (-2 * 10 ** (4 * (64 / 127 - 1))) - 1) < 1e-6);
  assert.equal(small.at(1, 1), 0);
  assert.ok(small.isBlocked(0, 1) && !small.isBlocked(1, 0));
  assert.equal(small.arrived.at(1, 0), 3);
  // Whatever rows the text has, the picture is drawn as a whole.
  assert.deepEqual(
    [...small.sample(Int32Array.of(0, 1, 2, 3), ALL.columns, 2, 2)],
    [...new MixedHead(small.cells, small.blocked, 2, 2).sample(ALL.rows, ALL.rows, 2, 2)],
  );
});
