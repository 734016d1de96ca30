import assert from "node:assert/strict";
import {test} from "node:test";

import {Part, WithoutHidden} from "../../../attention_viz/explorer/static/data/part.js";
import {readPayload, weightValues} from "../../../attention_viz/explorer/static/data/payload.js";
import {readHead} from "../../../attention_viz/explorer/static/data/terms.js";
import {exact, packed} from "./fixtures.js";

const VALUES = weightValues({levels: 4000});
const KINDS = ["causal", "capped", "sinks", "drawn", "distance", "wide"];
const countUp = (count, from = 0) => Int32Array.from({length: count}, (_, place) => place + from);

/** A head as Python packed it, and its weights. */
async function head(name) {
  const {header, body} = readPayload(packed(`long_${name}`));
  const found = await readHead({body}, header.entry, header.masks, VALUES);
  const {weights, open} = exact(`long_${name}`);
  return {found, weight: (query, key) => weights[query * found.keys + key], open};
}

/** The largest weight and the mean of some rows and columns; null where none is open. */
function content({found, weight, open}, rows, columns) {
  let [most, sum, count] = [0, 0, 0];
  for (const query of rows)
    for (const key of columns) {
      if (!open[query * found.keys + key]) continue;
      [most, sum, count] = [Math.max(most, weight(query, key)), sum + weight(query, key), count + 1];
    }
  return count ? {most, mean: sum / count} : null;
}

/** What asserts that a block's number says what is in it. */
function holding(map, means) {
  const {blocked, numbers, values} = map; // a map makes its values each time that it is asked
  return (block, wanted, said) => {
    assert.equal(blocked[block] === 1, wanted === null, said);
    if (wanted === null) return;
    const drawn = values[numbers[block]];
    const [exactly, near] = means ? [wanted.mean, 0.003 * wanted.mean + 1e-8] : [wanted.most, 0.5 / 4000 + 1e-5];
    assert.ok(Math.abs(drawn - exactly) <= near, `${said}: ${drawn} for ${exactly}`);
  };
}

/** Take all steps. */
function finish(blocks) {
  const steps = blocks.steps();
  while (!steps.next().done);
}

test("a part has blocks of its own: the largest or the mean of just their cells, whatever the terms of a head", async () => {
  for (const name of KINDS) {
    const one = await head(name);
    const [from, to] = name === "wide" ? [10, 290] : [101, 1000];
    const [rows, columns] = [countUp(to - from, from), countUp(947, 103)];
    for (const means of [false, true]) {
      const part = new Part(one.found, means ? one.found.means : one.found.map, rows, columns);
      finish(part);
      const assertHolds = holding(part.own, means);
      const [tall, wide] = part.size;
      assert.deepEqual([tall, wide], name === "wide" ? [1, 2] : [2, 2]);
      for (let row = 0; row < part.down; row += 3)
        for (let column = 0; column < part.across; column += 5) {
          const [top, left] = [row * tall, column * wide];
          const wanted = content(one, rows.subarray(top, top + tall), columns.subarray(left, left + wide));
          assertHolds(column * part.down + row, wanted, `${name} ${row} ${column}`);
        }
    }
  }
});

test("until it is computed a part is drawn from the whole's blocks, from the top on from its own", async () => {
  const {found} = await head("open");
  const [rows, columns] = [countUp(900, 101), countUp(900, 103)];
  const part = new Part(found, found.map, rows, columns);
  const coarse = found.map.sample(rows, columns, 450, 450);
  assert.deepEqual(part.sample(450, 450), coarse);
  const steps = part.steps();
  for (let step = 0; step <= part.across * 100; step++) steps.next();
  assert.ok(!part.done);
  const half = part.sample(450, 450);
  assert.notDeepEqual(half.subarray(0, 450 * 90), coarse.subarray(0, 450 * 90));
  assert.deepEqual(half.subarray(450 * 101), coarse.subarray(450 * 101));
  while (!steps.next().done);
  assert.ok(part.done);
  const fine = part.sample(450, 450);
  assert.deepEqual(half.subarray(0, 450 * 100), fine.subarray(0, 450 * 100));
  assert.notDeepEqual(fine.subarray(450 * 101), coarse.subarray(450 * 101));
  assert.ok(fine.every((number, pixel) => number <= coarse[pixel]));
});

test("hidden tokens are in no block of the whole, and only the blocks that held any are computed", async () => {
  const hidden = [0, 7, 8, 9, 500, 1102];
  for (const name of ["open", "causal", "window", "drawn"]) {
    const one = await head(name);
    const shown = countUp(one.found.keys).filter((place) => !hidden.includes(place));
    for (const means of [false, true]) {
      const whole = means ? one.found.means : one.found.map;
      const numbers = whole.numbers.slice();
      const without = new WithoutHidden(one.found, whole, shown, shown);
      let steps = 0;
      for (const work = without.steps(); !work.next().done;) steps += 1;
      assert.ok(without.done && steps === 368 ** 2 - 363 ** 2, `${steps} steps`);
      assert.deepEqual(whole.numbers, numbers);
      const assertHolds = holding(without.own, means);
      const inside = (from) => shown.filter((place) => place >= from && place < from + 3);
      const places = Array.from({length: 368}, (_, block) => inside(3 * block));
      for (const row of [0, 1, 2, 3, 100, 166, 167, 367])
        for (let column = 0; column < 368; column++) {
          const wanted = content(one, places[row], places[column]);
          assertHolds(column * 368 + row, wanted, `${name} ${row} ${column}`);
        }
    }
  }
});

test("a block of which all tokens are hidden is drawn nowhere", async () => {
  const {found} = await head("open");
  const shown = countUp(found.keys).filter((place) => place < 300 || place >= 330);
  const without = new WithoutHidden(found, found.map, shown, shown);
  finish(without);
  const pixels = without.sample(368, 368);
  assert.ok(pixels.every((number) => number < VALUES.length));
});
