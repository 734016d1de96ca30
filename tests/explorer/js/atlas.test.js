// The atlas of roles: how high it is, and whether the cards below it fold.

import assert from "node:assert/strict";
import {test} from "node:test";

import {foldsCards, rolesRoom} from "../../../attention_viz/explorer/static/atlas/grid.js";

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
