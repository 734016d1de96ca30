import {test} from "node:test";
import assert from "node:assert/strict";

import {weightText} from "../../../attention_viz/explorer/static/data/scale.js";
import {endOf} from "../../../attention_viz/explorer/static/present/bars.js";
import {NARROW, SMALLEST, onLine, stageOf} from "../../../attention_viz/explorer/static/present/room.js";
import {palenessOf} from "../../../attention_viz/explorer/static/present/shown.js";
import {
  actOf,
  moved,
  pastEnd,
  readPlace,
  slidesOrNone,
  written,
} from "../../../attention_viz/explorer/static/present/slides.js";

test("every slide is asked and then answered, and there is nothing before the first nor after the last", () => {
  let place = {at: 0, step: 0};
  assert.deepEqual(moved(place, "back", 2), place);
  const seen = [1, 2, 3, 4].map(() => written((place = moved(place, "on", 2))));
  assert.deepEqual(seen, ["1.2", "2.1", "2.2", "2.2"]);
  assert.equal(written(moved(place, "back", 2)), "2.1");
  assert.equal(written(moved(place, 0, 2)), "1.1");
  assert.equal(written(moved(place, 5, 2)), "2.2");
  assert.equal(written(moved(place, "last", 2)), "2.1");
});

test("other slides may follow after the last answer and before the first question", () => {
  assert.equal(pastEnd({at: 1, step: 1}, "on", 2), 1);
  assert.equal(pastEnd({at: 0, step: 0}, "back", 2), -1);
  for (const [at, step, act] of [
    [1, 0, "on"],
    [0, 1, "back"],
    [1, 1, "back"],
    [1, 1, "last"],
  ])
    assert.equal(pastEnd({at, step}, act, 2), 0);
});

test("an address names a slide and a step, as far in as there are slides", () => {
  assert.deepEqual(readPlace("2.2", 3), {at: 1, step: 1});
  assert.deepEqual(readPlace("9.2", 3), {at: 2, step: 0});
  for (const text of [null, "", "on", "0.1", "1.3", "1.1x"]) assert.equal(readPlace(text, 3), null);
});

test("keys go on and back, and a digit is a slide", () => {
  for (const key of ["ArrowRight", " ", "PageDown"]) assert.equal(actOf(key), "on");
  for (const key of ["ArrowLeft", "PageUp"]) assert.equal(actOf(key), "back");
  assert.deepEqual(["3", "b", "?", "Escape", "x", "toString"].map(actOf), [2, "blank", "help", "leave", null, null]);
});

test("a page without slides says so on one", () => {
  assert.equal(slidesOrNone([]).length, 1);
  assert.match(slidesOrNone(undefined)[0].ask[0][0], /Nothing to present/);
});

test("numbers have two digits after the point and never read as 0 where they aren't", () => {
  assert.deepEqual([0, 0.584, 1, 0.004, -1.25].map(weightText), ["0", "0.58", "1.00", "<0.01", "−1.25"]);
});

test("the smallest writing is 20 pixels and more, in any room; a stage fills it", () => {
  for (const [width, height] of [
    [1920, 1080],
    [1280, 720],
    [1360, 860],
    [390, 844],
  ]) {
    const stage = stageOf(width, height);
    assert.ok(SMALLEST * stage.scale >= 20 - 1e-9);
    assert.ok(Math.abs(stage.width * stage.scale - width) < 1e-6);
    assert.ok(Math.abs(stage.height * stage.scale - height) < 1e-6);
  }
  assert.ok(stageOf(390, 844).width < NARROW);
});

test("words stand on a line in order, without touching, with signs where some are left out", () => {
  const {lefts, signs, total} = onLine([100, 80, 120], [0, 2, 3], 1000);
  assert.equal(signs.length, 3);
  assert.ok(signs[0] < lefts[0] && signs[1] > lefts[1] + 80 && signs[1] < lefts[2] && signs[2] > lefts[2] + 120);
  assert.ok(lefts[1] > lefts[0] + 100 && total <= 1000);
});

test("over a picture the patch with the most weight is in full colour, and one without any the palest", () => {
  const [none, half, most, blocked] = palenessOf([0, 0.2, 0.4, null]);
  assert.equal(most, 0);
  assert.equal(none, blocked);
  assert.ok(half > 0 && Math.abs(half - none / 2) < 1e-9);
  assert.deepEqual(palenessOf([0, 0]), [none, none]);
});

test("a number stands past its own bar and past the frame of what was there before", () => {
  assert.equal(endOf(5.05, 28.56), 28.56);
  assert.equal(endOf(28.56, 5.05), 28.56);
  assert.equal(endOf(-2, 3), 3);
  assert.equal(endOf(null, 0.4), 0.4);
  assert.equal(endOf(null, null), 0);
});
