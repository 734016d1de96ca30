// The numbers at arcs: the heaviest first, and none over another.

import assert from "node:assert/strict";
import {test} from "node:test";

import {withoutOverlaps} from "../../../attention_viz/explorer/static/parts/arcs.js";

const label = (text, x, y) => ({text, x, y, width: 40, height: 14});
const texts = (labels) => labels.map(({text}) => text);

test("a label over a heavier one is left out, one beside or below it stays", () => {
  const labels = [
    label("a", 100, 20),
    label("b", 139, 20),
    label("c", 140, 20),
    label("d", 100, 33),
    label("e", 100, 34),
  ];
  assert.deepEqual(texts(withoutOverlaps(labels, 6)), ["a", "c", "e"]);
});

test("wide letters need more room than narrow ones", () => {
  const wide = {...label("b", 139, 20), width: 60};
  assert.deepEqual(texts(withoutOverlaps([label("a", 90, 20), wide], 6)), ["a"]);
});

test("no more labels than asked for, and one that was left out keeps nobody away", () => {
  const labels = [label("a", 0, 0), label("b", 30, 0), label("c", 60, 0), label("d", 200, 0)];
  assert.deepEqual(texts(withoutOverlaps(labels, 6)), ["a", "c", "d"]);
  assert.deepEqual(texts(withoutOverlaps(labels, 2)), ["a", "c"]);
});
