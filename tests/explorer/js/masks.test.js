// Masks: their cells, what a stroke does to them, and what the softmax makes of them.

import assert from "node:assert/strict";
import {test} from "node:test";

import {keepsRow, lengths, looksBack, ownOutputs} from "../../../attention_viz/explorer/static/masks/board.js";
import {claimOf, cutOf} from "../../../attention_viz/explorer/static/masks/telling.js";
import {NUMBER_WORDS, chosenPair} from "../../../attention_viz/explorer/static/masks/stage.js";
import {drawnNumbers} from "../../../attention_viz/explorer/static/masks/sheet.js";
import {
  actsIn,
  bitsOf,
  bytesOf,
  heaviestCut,
  nameOf,
  openCells,
  opens,
  paint,
  readsTheSame,
  softmaxOver,
  unpackBits,
} from "../../../attention_viz/explorer/static/masks/rules.js";

const NUMBERS = {window: 2, prefix: 2};
const LAYERS = [{number: 0}, {number: 1}, {number: 2}];
const cells = (/** @type {string} */ rows) => Uint8Array.from(rows.replaceAll(" ", ""), Number);
const all = (/** @type {number} */ count) => new Uint8Array(count * count).fill(1);

test("masks open the cells that their names say", () => {
  assert.deepEqual(openCells("causal", 3, NUMBERS), cells("100 110 111"));
  assert.deepEqual(openCells("window", 3, NUMBERS), cells("110 111 011"));
  assert.deepEqual(openCells("prefix", 3, NUMBERS), cells("110 110 111"));
  assert.deepEqual(openCells("none", 2, NUMBERS), cells("11 11"));
  assert.equal(openCells("padding", 3, NUMBERS), null);
  assert.equal(openCells("toString", 3, NUMBERS), null);
});

test("cells go to the page and come back as eight in a byte", () => {
  const drawn = cells("100 110 011");
  assert.deepEqual(unpackBits(bytesOf(bitsOf(drawn)), 9), drawn);
  assert.equal(bitsOf(cells("10000000 1")), "gIA=");
});

test("a brush blocks a cell, several, a row or a column, and never what the model blocks itself", () => {
  const own = cells("100 110 111");
  const stroke = {brush: /** @type {const} */ ("cell"), size: 1, query: 1, key: 0, open: false};
  const added = all(3);
  paint(added, own, 3, stroke);
  assert.deepEqual(added, cells("111 011 111"));
  paint(added, own, 3, {...stroke, brush: "column", key: 1});
  assert.deepEqual(added, cells("111 001 101"));
  paint(added, own, 3, {...stroke, brush: "row", query: 1, open: true});
  assert.deepEqual(added, cells("111 111 101"));
  paint(added, own, 3, {...stroke, size: 2, query: 2, key: 2});
  assert.deepEqual(added, cells("111 101 100"));
});

test("a stroke opens where all that it begins on is blocked", () => {
  const own = cells("100 110 111");
  const added = cells("111 001 111");
  assert.equal(opens(added, own, 3, {brush: "cell", query: 1, key: 0}), true);
  assert.equal(opens(added, own, 3, {brush: "cell", query: 2, key: 0}), false);
  assert.equal(opens(added, own, 3, {brush: "row", query: 1, key: 0}), true);
  assert.equal(opens(added, own, 3, {brush: "column", query: 1, key: 0}), false);
});

test("a drawing has the name of the mask that blocks the same beside the model's own", () => {
  assert.equal(nameOf(cells("100 110 111"), all(3), 3, NUMBERS), "causal");
  assert.equal(nameOf(cells("100 110 111"), cells("100 110 111"), 3, NUMBERS), "none");
  assert.equal(nameOf(cells("101 110 111"), all(3), 3, NUMBERS), "drawn");
});

test("the softmax is taken over what is open; a row without anything is 0, and a sink takes its share", () => {
  const logits = Float32Array.of(1, 2, 3, 1, 2, 3);
  const weights = softmaxOver(logits, cells("110 000"), 3, null);
  assert.ok(Math.abs(weights[1] - 1 / (1 + Math.exp(-1))) < 1e-12);
  assert.deepEqual([...weights.slice(2)], [0, 0, 0, 0]);
  const shared = softmaxOver(logits, cells("001 000"), 3, 3);
  assert.deepEqual([...shared], [0, 0, 0.5, 0, 0, 0]);
});

test("a layer reads the same where nothing was blocked before it", () => {
  const choice = {mask: "causal", window: 2, prefix: 2, in_layer: null, in_head: null};
  assert.deepEqual(
    [0, 1].map((layer) => readsTheSame(choice, layer, LAYERS)),
    [true, false],
  );
  assert.deepEqual(
    [0, 1, 2].map((layer) => readsTheSame({...choice, in_layer: 1}, layer, LAYERS)),
    [true, true, false],
  );
  // In a hybrid the first layer that attends needn't be layer 0.
  assert.deepEqual(
    [1, 3].map((layer) => readsTheSame(choice, layer, [{number: 1}, {number: 3}])),
    [true, false],
  );
  assert.equal(actsIn({...choice, in_head: 3}, 5, 3), true);
  assert.equal(actsIn({...choice, in_layer: 1}, 5, 3), false);
});

test("the heaviest link that was cut is one between words, unless that is next to nothing", () => {
  const before = Float64Array.of(0.9, 0.06, 0.04, 0.2, 0.5, 0.3, 0.1, 0.8, 0.1);
  const open = cells("011 111 101");
  assert.deepEqual(heaviestCut(before, open, 3, new Set([0])), {query: 2, key: 1, weight: 0.8});
  assert.deepEqual(heaviestCut(before, open, 3, new Set([0, 1])), {query: 0, key: 0, weight: 0.9});
  assert.equal(heaviestCut(before, all(3), 3, new Set()), null);
});

test("where only tokens that fill up the row lose something, no word is said to", () => {
  const axis = {tokens: ["a", "b", "[PAD]"], special: [], padding: [2]};
  const header = {queries: axis, keys: axis, causal: true};
  const ground = /** @type {any} */ ({header, columns: 3});
  const [own, open] = [cells("100 110 111"), cells("100 110 110")];
  const matrices = {own, open, before: new Float64Array([1, 0, 0, 0.5, 0.5, 0, 0.2, 0.3, 0.5]), after: null};
  const told = (/** @type {unknown} */ run) =>
    claimOf(ground, /** @type {any} */ (matrices), /** @type {any} */ (run), false)[0];
  assert.match(String(told({outputs: [0, 0, 0.3]})), /^This sentence is unaffected: only padding/u);
  assert.match(String(told(null)), /^In this head only padding .*; running the model/u);
  assert.equal(cutOf(ground, /** @type {any} */ (matrices)), null);
});

test("the frame without a chosen pair is on the link that the sentence names", () => {
  const axis = {tokens: ["a", "b"], special: [], padding: []};
  const ground = /** @type {any} */ ({header: {queries: axis, keys: axis}, columns: 2});
  const before = new Float64Array([0.4, 0.6, 0.7, 0.3]);
  const cut = (/** @type {string} */ open) =>
    cutOf(ground, /** @type {any} */ ({own: cells("11 11"), open: cells(open), before, after: null}));
  assert.deepEqual(cut("10 11"), {query: 0, key: 1, weight: 0.6});
  assert.deepEqual(cut("10 01"), {query: 1, key: 0, weight: 0.7});
  assert.equal(cut("11 11"), null);
});

test("this head's own output moves by the values that it fetches otherwise", () => {
  // Two keys with the values (3, 0) and (0, 4); the second row stays as it is.
  const ground = {values: Float32Array.of(3, 0, 0, 4), rows: 2, columns: 2};
  const before = Float64Array.of(1, 0, 0.5, 0.5);
  const moved = ownOutputs(ground, {before, after: Float64Array.of(0, 1, 0.5, 0.5)});
  assert.ok(moved && Math.abs(moved[0] - 5 / 3) < 1e-12 && moved[1] === 0);
  assert.equal(ownOutputs(ground, {before, after: null}), null);
  assert.equal(ownOutputs({...ground, values: new Float32Array(0)}, {before, after: before}), null);
});

test("the deepest colour is the largest number's, and in a long text that of all but a few", () => {
  const matrices = (/** @type {Float32Array} */ before, /** @type {Float32Array} */ after) =>
    /** @type {Parameters<typeof drawnNumbers>[0]} */ (/** @type {unknown} */ ({before, after}));
  const few = matrices(Float32Array.of(0, 0.5), Float32Array.of(0.25, 0.25));
  assert.deepEqual([...drawnNumbers(few, "difference").numbers], [0.25, -0.25]);
  assert.deepEqual([drawnNumbers(few, "difference").end, drawnNumbers(few, "difference").beyond], [0.3, false]);
  assert.deepEqual([drawnNumbers(few, "before").end, drawnNumbers(few, "before").beyond], [1, false]);
  const many = new Float32Array(100 * 100).fill(0.01);
  many.fill(0.9, 0, 50);
  const long = matrices(
    many,
    many.map(() => 0),
  );
  assert.deepEqual([drawnNumbers(long, "before").end, drawnNumbers(long, "before").beyond], [0.01, true]);
  assert.deepEqual([drawnNumbers(long, "difference").end, drawnNumbers(long, "difference").beyond], [0.01, true]);
  many.fill(0.9, 0, 51);
  assert.deepEqual([drawnNumbers(long, "before").end, drawnNumbers(long, "before").beyond], [1, false]);
});

test("a model that lets no token look ahead is told from one that does", () => {
  const ground = (/** @type {string} */ rows) => /** @type {any} */ ({own: cells(rows), columns: 3});
  assert.ok(looksBack(ground("100 110 111")));
  assert.ok(!looksBack(ground("110 111 011")));
});

test("how far an output moved is a share of its length, and from all of it on a multiple", () => {
  assert.deepEqual([0, 0.0001, 0.042, 0.5, 0.994].map(lengths), ["0 %", "<0.1 %", "4.2 %", "50 %", "99 %"]);
  assert.deepEqual([0.996, 1.33, 4.98].map(lengths), ["1.00 \u00d7", "1.33 \u00d7", "4.98 \u00d7"]);
});

test("a window says that the token itself is open, too", () => {
  const words = /** @type {(number: number, back: boolean) => string} */ (NUMBER_WORDS["window"]);
  assert.deepEqual(
    [words(1, false), words(2, false), words(3, true)],
    ["only itself", "itself and 1 on each side", "itself and 2 before it"],
  );
});

test("what is painted is told by its heaviest link, and a mask with a name by the pair that was chosen", () => {
  const pair = {query: 1, key: 2};
  const choice = {mask: "causal", window: 2, prefix: 2, in_layer: null, in_head: null};
  const [message, ground] = /** @type {any} */ ([{query: pair.query}, {header: {queries: {}}}]);
  assert.equal(chosenPair({choice, pair, message, ground}), pair);
  assert.equal(chosenPair({choice: {...choice, mask: "drawn"}, pair, message, ground}), null);
  assert.equal(chosenPair({choice, pair, message: {...message, query: null}, ground}), null);
});

test("a row that a mask leaves as it was is known, as it has no colour among the differences", () => {
  const before = Float64Array.of(0.5, 0.5, 0.2, 0.8);
  assert.ok(keepsRow({before, after: Float64Array.of(1, 0, 0.2, 0.8)}, 2));
  assert.ok(!keepsRow({before, after: Float64Array.of(1, 0, 0.21, 0.79)}, 2));
  assert.ok(!keepsRow({before, after: null}, 2));
});
