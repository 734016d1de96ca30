// The atlas of roles: how high it is, and whether the cards below it fold.

import assert from "node:assert/strict";
import {test} from "node:test";

import {foldsCards, rolesRoom} from "../../../attention_viz/explorer/static/atlas/grid.js";
import {matrixOf} from "../../../attention_viz/explorer/static/atlas/preview.js";

const model = (/** @type {number} */ layers, /** @type {number} */ heads) =>
  Array.from({length: layers}, () => ({heads}));

test("from 29 rows on the cards fold to their names and the atlas grows with the rows", () => {
  assert.deepEqual(
    [model(6, 12), model(30, 9), model(28, 28), model(29, 29), model(32, 32), model(48, 64)].map(foldsCards),
    [false, false, false, true, true, true],
  );
  // Twelve heads have room for their numbers; beyond that, cells become smaller before the atlas grows.
  assert.ok(rolesRoom(model(6, 12)) > rolesRoom(model(30, 9)));
  assert.equal(rolesRoom(model(6, 12)), rolesRoom(model(28, 28)));
  assert.ok(rolesRoom(model(32, 32)) >= 9 * 32 && rolesRoom(model(48, 64)) >= 9 * 48);
});

test("a head that is pointed at has the numbers that ran, and of a long text the levels of its pattern", () => {
  const pattern = {weights: Uint8Array.of(254, 127, 255, 0, 64, 254), blocked: null, queries: 2};
  const cell = /** @type {any} */ ({place: 1, full: 0.5, of: {}, pattern});
  const header = /** @type {any} */ ({queries: ["a", "b"], keys: ["x", "y", "z"]});
  const coarse = matrixOf(header, cell);
  // Packed key by key: a's row is every second byte.
  assert.deepEqual([...coarse.levels], [1000, 0xffff, 252, 500, 0, 1000]);
  assert.deepEqual([...(coarse.blocked ?? [])], [0, 1, 0, 0, 0, 0]);
  assert.ok(coarse.values.every(Number.isNaN));
  const matrices = Float32Array.of(9, 9, 9, 9, 9, 9, 0.5, 0, 0.125, 0.25, 0, 0.375);
  const exact = matrixOf({...header, matrices}, cell);
  assert.deepEqual([...exact.values], [0.5, 0, 0.125, 0.25, 0, 0.375]);
  assert.deepEqual([...exact.levels], [1000, 0xffff, 250, 500, 0, 750]);
});
