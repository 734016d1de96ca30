import assert from "node:assert/strict";
import test from "node:test";

import {shortened} from "../../../attention_viz/explorer/static/parts/labels.js";

// Each sign is one pixel wide.
const context = /** @type {CanvasRenderingContext2D} */ (
  /** @type {unknown} */ ({measureText: (/** @type {string} */ text) => ({width: text.length})})
);

test("a name that fits is whole", () => {
  assert.equal(shortened(context, "object query 3", 14), "object query 3");
});

test("a cut name keeps the number that tells it from others", () => {
  assert.equal(shortened(context, "object query 3", 10), "object \u2026 3");
  assert.equal(shortened(context, "object query 12", 10), "object\u2026 12");
  assert.equal(shortened(context, "span 104\u2013111", 10), "s\u2026 104\u2013111");
  assert.equal(shortened(context, "object query 12", 5), "o\u2026 12");
  assert.equal(shortened(context, "span 1234\u20132345", 8), "span 12\u2026");
});

test("a cut word keeps its start, and what is isolated is closed", () => {
  assert.equal(shortened(context, "unpredictability", 8), "unpredi\u2026");
  assert.equal(shortened(context, "route66alpha", 6), "route\u2026");
  assert.equal(shortened(context, "\u2068unpredictability\u2069", 8), "\u2068unpred\u2069\u2026");
});
