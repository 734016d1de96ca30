import assert from "node:assert/strict";
import {test} from "node:test";

import {Recording} from "../../../attention_viz/explorer/static/data/recording.js";
import {packed} from "./fixtures.js";

const HEAD = {stream: "decoder", layer: 0, head: 1};
const QUERIES = 1103;
const all = Int32Array.from({length: QUERIES}, (_, place) => place);

async function begun() {
  const recording = new Recording(packed("long"));
  assert.ok(await recording.receive(packed("long_beginning")));
  return recording;
}

test("of the beginning of a head's bytes there are its maps, and no numbers", async () => {
  const recording = await begun();
  assert.equal(recording.head(HEAD), null);
  assert.equal(recording.maps({...HEAD, head: 0}), null);
  assert.ok(recording.maps(HEAD));
});

test("what is drawn ahead is what is drawn once the numbers are there", async () => {
  const recording = await begun();
  const maps = recording.maps(HEAD);
  const ahead = [maps, maps.means].map((one) => one.sample(all, all, 300, 200));
  await recording.receive(packed("long_head"));
  const head = recording.head(HEAD);
  assert.deepEqual(
    ahead,
    [head, head.means].map((one) => one.sample(all, all, 300, 200)),
  );
  assert.equal(maps.maximum(), head.maximum(all, all));
  assert.deepEqual(maps.values, head.map.values);
});

test("the numbers are the same with maps that came ahead and without", async () => {
  const [ahead, alone] = [await begun(), new Recording(packed("long"))];
  for (const recording of [ahead, alone]) assert.ok(await recording.receive(packed("long_head")));
  assert.equal(ahead.head(HEAD).at(700, 699), alone.head(HEAD).at(700, 699));
  assert.deepEqual(ahead.head(HEAD).sums, alone.head(HEAD).sums);
});

test("a beginning that comes late changes nothing", async () => {
  const recording = new Recording(packed("long"));
  await recording.receive(packed("long_head"));
  const head = recording.head(HEAD);
  assert.ok(await recording.receive(packed("long_beginning")));
  assert.equal(recording.head(HEAD), head);
  assert.equal(recording.maps(HEAD), null);
});

test("of some rows or columns the maps aren't drawn: what is largest among them they don't know", async () => {
  const maps = (await begun()).maps(HEAD);
  assert.ok(maps.shows(all, all));
  assert.ok(!maps.shows(all.subarray(1), all));
  assert.ok(!maps.shows(all, all.subarray(1)));
});
