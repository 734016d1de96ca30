import assert from "node:assert/strict";
import {test} from "node:test";

import {
  halfOn,
  lineOf,
  overPatches,
  patchesOf,
  regionsOf,
} from "../../../attention_viz/explorer/static/seen/patches.js";
import {contourOf} from "../../../attention_viz/explorer/static/seen/contour.js";
import {nameOfPatch, tellPatch, whereInImage} from "../../../attention_viz/explorer/static/seen/telling.js";
import {veilOf} from "../../../attention_viz/explorer/static/seen/veil.js";

// A class token, and three rows of four patches.
const axis = {
  labels: ["[CLS]", ...Array.from({length: 12}, (_, at) => `${Math.floor(at / 4)},${at % 4}`)],
  place: [null, ...Array.from({length: 12}, (_, at) => [Math.floor(at / 4), at % 4])],
  dimmed: Uint8Array.from({length: 13}, (_, at) => Number(at === 0)),
  count: 13,
};
const patches = patchesOf(axis);
const headOf = (rows) => ({at: (query, key) => rows[query]?.[key] ?? 0});

function said(head, chosen, direction = "from") {
  return tellPatch(head, chosen, direction, patches, axis)
    .said.map(([text]) => text)
    .join("");
}

test("patches stand where their places say, and what has none stands beside them", () => {
  assert.deepEqual([patches.down, patches.across, patches.others], [3, 4, [0]]);
  assert.equal(patches.positions[5], 6);
  assert.equal(patches.numbers[6], 5);
  assert.equal(patchesOf({place: null, count: 3, dimmed: []}), null);
  assert.equal(patchesOf({place: [[0.02], [0.04]], count: 2}), null);
});

test("a line is a row, or a column where it is asked who looks", () => {
  const head = headOf([[0.1, 0.9], [0.4]]);
  assert.deepEqual([...lineOf(head, 0, 2, "from")], [0.1, 0.9].map(Math.fround));
  assert.deepEqual([...lineOf(head, 0, 2, "to")], [0.1, 0.4].map(Math.fround));
});

test("regions are the patches that have half of the largest weight, those that touch each other together", () => {
  const weights = Float32Array.of(0.4, 0.3, 0, 0.35, 0.1, 0.2, 0, 0, 0, 0, 0, 0);
  const regions = regionsOf(weights, patches);
  assert.deepEqual(
    regions.map((one) => one.patches),
    [[0, 1, 5], [3]],
  );
  assert.ok(Math.abs(regions[0].share - 0.9) < 1e-6 && Math.abs(regions[1].share - 0.35) < 1e-6);
  assert.deepEqual(regionsOf(new Float32Array(12), patches), []);
});

test("half of the weight is on as many patches as are needed, the heaviest first", () => {
  assert.equal(halfOn(Float32Array.of(0.25, 0.25, 0.25, 0.25)), 2);
  assert.equal(halfOn(Float32Array.of(0.1, 0.8, 0.1)), 1);
});

test("what a patch looks at is told without rows and columns", () => {
  const row = (cells) => Array.from({length: 13}, (_, at) => cells[at] ?? 0);
  assert.equal(said(headOf([row({6: 0.6, 7: 0.4})]), 0), "The class token looks at one region near the centre: 1.00");
  assert.equal(said(headOf([row({1: 0.5, 12: 0.3})]), 0), "The class token looks at two regions: 0.80");
  const one = headOf(Array(13).fill(row({3: 0.7})));
  assert.equal(said(one, 5), "The patch on the left looks at one patch at the top: 0.70");
  assert.equal(said(one, 3), "The patch at the top looks at itself: 0.70");
  const own = headOf(Array(13).fill(row({5: 0.4, 12: 0.3})));
  assert.equal(said(own, 5), "The patch on the left looks at two regions, one around itself: 0.70");
  assert.equal(
    said(headOf(Array(13).fill(row({0: 0.8}))), 12),
    "The patch at the lower right looks at the class token: 0.80",
  );
  assert.equal(said(headOf([row({0: 0.8})]), 0), "The class token looks at itself: 0.80");
  const even = headOf([Array(13).fill(1 / 13)]);
  assert.equal(said(even, 0), "The class token looks broadly: half on 6 of 12 patches");
  const four = headOf([row({1: 0.25, 3: 0.25, 9: 0.25, 11: 0.25})]);
  assert.match(said(four, 0), /^The class token looks broadly/);
});

test("who looks at a patch is counted, since a column doesn't add up to 1", () => {
  const looks = (query, key) => (key === 4 && query < 5 ? 0.3 : 0);
  const column = {at: looks};
  assert.equal(said(column, 4, "to"), "5 of 13 give the patch at the upper right a tenth of their weight or more");
  assert.equal(said(column, 5, "to"), "Nothing looks at the patch on the left");
});

test("a picture of one row of patches is told by left and right alone", () => {
  const line = {down: 1, across: 6};
  assert.deepEqual(
    [[0], [2, 3], [5]].map((one) => whereInImage(one, line)),
    ["on the left", "near the centre", "on the right"],
  );
});

test("the contour encloses the patches with half of the largest weight, and no others", () => {
  const weights = Float32Array.of(0, 0, 0, 0, 0, 0.5, 0.2, 0, 0, 0, 0, 0);
  const strokes = contourOf(weights, patches, false);
  assert.deepEqual(
    strokes.map((one) => one.map((part) => Math.round(part * 12))),
    [
      [3, 4, 6, 4],
      [3, 4, 3, 8],
      [6, 4, 6, 8],
      [3, 8, 6, 8],
    ],
  );
  // Where it is smooth, each point has half of the light: halfway to where there is nothing, further where there is some.
  const smooth = contourOf(weights, patches, true).flatMap(([x, y, toX, toY]) => [
    [x, y],
    [toX, toY],
  ]);
  const across = smooth.map(([x]) => 4 * x);
  assert.ok(smooth.length > 20 && Math.abs(Math.min(...across) - 1) < 0.05);
  assert.ok(Math.max(...across) > 2.05 && Math.max(...across) < 2.3);
  assert.deepEqual(contourOf(new Float32Array(12), patches, true), []);
});

test("a position is told by row and column from 1, and a register by its own name", () => {
  assert.equal(nameOfPatch(patches, axis, 12), "patch 2, 3");
  assert.equal(nameOfPatch(patchesOf({place: [null, [0, 0]], count: 2, dimmed: [1, 0]}), {labels: ["[REG1]", "0,0"]}, 0), "[REG1]");
});

test("the veil is none over the heaviest patch, whole over one without weight, and by patches nothing between", () => {
  const weights = overPatches(
    Float32Array.from(axis.place, (place) => (place?.[0] === 1 && place[1] === 1 ? 0.5 : 0)),
    patches,
  );
  const veil = veilOf(weights, patches, 12, false);
  assert.deepEqual(new Set(veil), new Set([0, 255]));
  assert.deepEqual([veil[4 * 12 + 3], veil[4 * 12 + 6], veil[0]], [0, 255, 255]);
});

test("a smooth veil is as the patches are in the middle of each, and shows nothing beyond them", () => {
  const weights = Float32Array.of(0, 1, 0.25, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const size = 12 * 9;
  const veil = veilOf(weights, patches, size, true);
  const at = (row, column) => veil[Math.floor((row + 0.5) * 36) * size + Math.floor((column + 0.5) * 27)];
  assert.ok(at(0, 1) < 4 && Math.abs(at(0, 2) - 191) < 4 && at(0, 0) > 250);
  assert.deepEqual(new Set(veilOf(new Float32Array(12), patches, 12, true)), new Set([255]));
});
