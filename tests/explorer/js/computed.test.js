import assert from "node:assert/strict";
import {test} from "node:test";

import {readPayload, weightValues} from "../../../attention_viz/explorer/static/data/payload.js";
import {readHead} from "../../../attention_viz/explorer/static/data/terms.js";
import {exact, expected, packed} from "./fixtures.js";

const VALUES = weightValues({levels: 4000});
const KINDS = expected("long_names");
const countUp = (count, from = 0) => Int32Array.from({length: count}, (_, place) => from + place);

/** A head as Python packed it, and what its trace says of it. */
async function head(name) {
  const {header, body} = readPayload(packed(`long_${name}`));
  const found = await readHead({body}, header.entry, header.masks, VALUES);
  const {weights, open} = exact(`long_${name}`);
  return {found, header, weight: (query, key) => weights[query * found.keys + key], open};
}

test("every weight and every blocked cell is the trace's, whatever the terms of a head", async () => {
  for (const name of KINDS) {
    const {found, weight, open} = await head(name);
    let worst = 0;
    for (let query = 0; query < found.queries; query += 3)
      for (let key = 0; key < found.keys; key++) {
        if (found.isBlocked(query, key) === Boolean(open[query * found.keys + key]))
          assert.fail(`${name}, ${query}, ${key}`); // millions of cells: words only where they are wanted
        worst = Math.max(worst, Math.abs(found.at(query, key) - weight(query, key)));
      }
    assert.ok(worst <= 1e-5, `${name} is off by ${worst}`);
  }
});

test("only a bias with a number of its own for each cell makes the weights travel", async () => {
  for (const name of KINDS) assert.equal("weights" in (await head(name)).header.entry, name === "cells", name);
});

test("a row sums to what the trace's does, with sinks and with nothing allowed, too", async () => {
  for (const name of ["causal", "sinks", "drawn"]) {
    const {found, weight} = await head(name);
    const [all, some] = [countUp(found.keys), countUp(found.keys - 100, 100)];
    for (const query of [0, 5, 7, 900]) {
      const row = Array.from(all, (key) => weight(query, key));
      const sum = (weights) => weights.reduce((total, one) => total + one, 0);
      assert.ok(Math.abs(found.sum(query, all) - sum(row)) < 1e-5, name);
      assert.ok(Math.abs(found.sum(query, some) - sum(row.slice(100))) < 1e-5, `${name}, some of it`);
    }
  }
});

test("a part of 512 x 512 cells is drawn cell by cell, as the trace has them", async () => {
  const {found, weight, open} = await head("window");
  const [rows, columns] = [countUp(512, 350), countUp(512, 340)];
  const pixels = found.sample(rows, columns, 512, 512);
  for (let y = 0; y < 512; y += 7)
    for (let x = 0; x < 512; x++) {
      const wanted = weight(rows[y], columns[x]);
      if (!open[rows[y] * found.keys + columns[x]]) assert.equal(pixels[y * 512 + x], 0xffff);
      else assert.ok(Math.abs(VALUES[pixels[y * 512 + x]] - wanted) <= 0.5 / 4000 + 1e-5);
    }
});

test("hidden rows and columns are left out of what is drawn", async () => {
  const {found, weight} = await head("open");
  const [rows, columns] = [Int32Array.of(3, 700, 1102), Int32Array.of(0, 64, 65)];
  const pixels = found.sample(rows, columns, 3, 3);
  rows.forEach((query, y) =>
    columns.forEach((key, x) => assert.ok(Math.abs(VALUES[pixels[y * 3 + x]] - weight(query, key)) < 2e-4)),
  );
});

test("of the whole the largest weight of each block is drawn, and a block without an open cell is blocked", async () => {
  const {found, weight, open} = await head("drawn");
  const [tall, wide] = found.map.size;
  const [down, across] = [Math.ceil(found.queries / tall), Math.ceil(found.keys / wide)];
  assert.deepEqual([tall, wide, down, across], [3, 3, 368, 368]);
  const pixels = found.sample(countUp(found.queries), countUp(found.keys), across, down);
  let hatched = 0;
  for (let row = 0; row + 1 < down; row += 5)
    for (let column = 0; column + 1 < across; column++) {
      // A pixel and its block don't begin at quite the same cell: what is under the pixel is in these blocks.
      const first = [(row * found.queries) / down / tall, (column * found.keys) / across / wide].map(Math.floor);
      const last = [((row + 1) * found.queries) / down, ((column + 1) * found.keys) / across].map(
        (at) => Math.ceil(at) - 1,
      );
      let [most, any] = [0, false];
      for (let query = first[0] * tall; query < (Math.floor(last[0] / tall) + 1) * tall; query++)
        for (let key = first[1] * wide; key < (Math.floor(last[1] / wide) + 1) * wide; key++) {
          most = Math.max(most, weight(query, key));
          any ||= Boolean(open[query * found.keys + key]);
        }
      const pixel = pixels[row * across + column];
      if (!any) hatched += 1;
      if (any) assert.ok(Math.abs(VALUES[pixel] - most) <= 0.5 / 4000 + 1e-7);
      else assert.equal(pixel, 0xffff);
    }
  assert.ok(hatched > 100);
});

test("a block of the other map has the mean of its open cells, whatever the terms of a head", async () => {
  for (const name of KINDS) {
    const {found, weight, open} = await head(name);
    const [tall, wide] = found.means.size;
    const down = Math.ceil(found.queries / tall);
    for (let row = 0; row < down; row += 7)
      for (let column = 0; column * wide < found.keys; column++) {
        let [sum, count] = [0, 0];
        for (let query = row * tall; query < Math.min((row + 1) * tall, found.queries); query++)
          for (let key = column * wide; key < Math.min((column + 1) * wide, found.keys); key++) {
            sum += open[query * found.keys + key] ? weight(query, key) : 0;
            count += open[query * found.keys + key];
          }
        const block = column * down + row;
        assert.equal(Boolean(found.means.blocked?.[block]), count === 0, name);
        const mean = count ? sum / count : 0;
        const drawn = found.means.values[found.means.numbers[block]];
        assert.ok(Math.abs(drawn - mean) <= 0.005 * mean + 1e-8, `${name}: ${drawn} for ${mean}`);
      }
  }
});

test("the strongest cells of all are found without looking at all of them", async () => {
  for (const name of KINDS) {
    const {found, weight} = await head(name);
    const accepts = (query, key) => query !== key && key > 0;
    const cells = new Float64Array(found.queries * found.keys); // those not accepted stay 0, below all others
    for (let query = 0; query < found.queries; query++)
      for (let key = 0; key < found.keys; key++)
        if (accepts(query, key)) cells[query * found.keys + key] = weight(query, key);
    cells.sort().reverse();
    let looked = 0;
    const strongest = found.strongest(countUp(found.queries), countUp(found.keys), 16, (query, key) => {
      looked += 1;
      return accepts(query, key);
    });
    assert.ok(looked < (found.queries * found.keys) / 10, `${name}: ${looked}`);
    strongest.forEach((cell, place) => {
      assert.ok(accepts(cell.query, cell.key));
      assert.ok(Math.abs(cell.weight - cells[place]) <= 1e-5, `${name}: ${cell.weight} for ${cells[place]}`);
      assert.ok(Math.abs(cell.weight - weight(cell.query, cell.key)) <= 1e-5);
    });
    assert.equal(strongest.length, 16);
  }
});

test("the largest weight of what is shown leaves out what is hidden", async () => {
  const {found, weight} = await head("causal");
  const all = countUp(found.keys);
  const [best] = found.strongest(all, all, 1);
  const shown = all.filter((place) => place !== best.key);
  let most = 0;
  for (const query of shown) for (const key of shown) most = Math.max(most, weight(query, key));
  assert.ok(most < best.weight - 1e-4, `${most}`);
  assert.ok(Math.abs(found.maximum(all, all) - best.weight) < 1e-5);
  assert.ok(Math.abs(found.maximum(shown, shown) - most) < 1e-5);
});

test("the strongest cells of a part are found by looking at it", async () => {
  const {found, weight} = await head("causal");
  const [rows, columns] = [countUp(40, 600), countUp(40, 590)];
  const [best] = found.strongest(rows, columns, 1);
  let most = 0;
  for (const query of rows) for (const key of columns) most = Math.max(most, weight(query, key));
  assert.ok(Math.abs(best.weight - most) < 1e-5);
  assert.ok(Math.abs(found.maximum(rows, columns) - most) < 1e-5);
});
