import assert from "node:assert/strict";
import {test} from "node:test";

import {isWhole, panned, showing, wholeWindow, zoomed} from "../../../attention_viz/explorer/static/data/viewport.js";

const whole = wholeWindow(20, 30);

test("a window on everything leaves nothing out", () => {
  assert.ok(isWhole(whole));
  assert.ok(!isWhole(zoomed(whole, 0.5, 0, 0)));
});

test("zooming keeps the cell under the pointer where it is", () => {
  const near = zoomed(whole, 0.5, 10, 15);
  assert.deepEqual([near.bottom - near.top, near.right - near.left], [10, 15]);
  const share = (10.5 - near.top) / 10;
  assert.ok(Math.abs(share - 10.5 / 20) <= 1 / 10);
});

test("zooming ends at three cells, and at everything", () => {
  let near = whole;
  for (let i = 0; i < 30; i++) near = zoomed(near, 0.75, 0, 29);
  assert.deepEqual([near.top, near.bottom, near.left, near.right], [0, 3, 27, 30]);
  for (let i = 0; i < 30; i++) near = zoomed(near, 1 / 0.75, 0, 29);
  assert.ok(isWhole(near));
});

test("a step of zooming always changes something, where there is something to change", () => {
  const near = {...whole, top: 0, bottom: 4, left: 0, right: 4};
  assert.equal(zoomed(near, 0.95, 0, 0).bottom, 3);
  assert.equal(zoomed(near, 1.05, 0, 0).bottom, 5);
});

test("panning stops at the edges", () => {
  const near = zoomed(whole, 0.5, 0, 0);
  const moved = panned(near, 100, -100);
  assert.deepEqual([moved.top, moved.bottom, moved.left, moved.right], [10, 20, 0, 15]);
});

test("a window moves just so far that a cell is inside, and not at all where it is", () => {
  const near = {...whole, top: 5, bottom: 10, left: 5, right: 10};
  assert.deepEqual(showing(near, 6, 6), near);
  const moved = showing(near, 3, 12);
  assert.deepEqual([moved.top, moved.bottom, moved.left, moved.right], [3, 8, 8, 13]);
});
