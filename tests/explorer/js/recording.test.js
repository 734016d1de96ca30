import assert from "node:assert/strict";
import {test} from "node:test";

import {Recording} from "../../../attention_viz/explorer/static/data/recording.js";
import {expected, packed} from "./fixtures.js";

test("the nearest head to one that isn't there is the nearest by number, of the stream asked for or the first", () => {
  const recording = new Recording(packed("many_kinds"));
  assert.deepEqual(recording.nearest({stream: "decoder", layer: 9, head: 9}), {stream: "decoder", layer: 1, head: 3});
  assert.deepEqual(recording.nearest({stream: "middle", layer: -1, head: "x"}), {stream: "encoder", layer: 0, head: 0});
  assert.deepEqual(recording.nearest({}), {stream: "encoder", layer: 0, head: 0});
});

test("a head is called by its layer's number, where layers are left out, and else by its place", () => {
  const recording = new Recording(packed("many_kinds"));
  const [encoder] = recording.streams;
  assert.equal(recording.headName(encoder, 1, 2), "Layer 1 \u00b7 Head 2");
  encoder.layers[1].number = 24;
  assert.equal(recording.headName(encoder, 1, 2), "Layer 24 \u00b7 Head 2");
});

test("a head is there once its layer has been read, and a layer is read once", async () => {
  const recording = new Recording(packed("many_kinds"));
  assert.equal(recording.head({stream: "cross", layer: 1, head: 2}), null);
  const reading = recording.load("cross", 1);
  assert.equal(recording.load("cross", 1), reading);
  const heads = await reading;
  assert.equal(recording.head({stream: "cross", layer: 1, head: 2}), heads[2]);
  assert.equal(recording.head({stream: "cross", layer: 1, head: 3}), null);
});

test("every head of every stream reads as Python says: weights, blocked cells and sums", async () => {
  const recording = new Recording(packed("many_kinds"));
  const {streams} = expected("many_kinds");
  for (const {name, layers, queries, keys} of recording.streams)
    for (let layer = 0; layer < layers.length; layer++) {
      const heads = await recording.load(name, layer);
      assert.equal(heads.length, streams[name][layer].length);
      heads.forEach((one, number) => {
        const {weights, blocked, sums} = streams[name][layer][number];
        for (let query = 0; query < queries.count; query++) {
          assert.ok(Math.abs(one.sums[query] - sums[query]) < 1e-5);
          for (let key = 0; key < keys.count; key++) {
            assert.ok(Math.abs(one.at(query, key) - weights[query][key]) <= recording.header.error);
            assert.equal(one.isBlocked(query, key), blocked[query][key]);
          }
        }
      });
    }
});

test("own attention is told from attention over another text", () => {
  const recording = new Recording(packed("many_kinds"));
  assert.deepEqual(
    recording.streams.map(({own}) => own),
    [true, true, false],
  );
});

test("of a long text a head is there in small once its layer is read, and whole where it came along", async () => {
  const recording = new Recording(packed("long"));
  const [inside, outside] = [
    {stream: "decoder", layer: 1, head: 0},
    {stream: "decoder", layer: 0, head: 1},
  ];
  assert.equal(recording.picture(outside), null);
  await recording.load("decoder", 0);
  assert.equal(recording.picture(outside).whole.weights.length, 62 * 62);
  assert.ok(recording.has(inside) && !recording.has(outside));
  assert.ok(!(await recording.loadHead(outside)));
  assert.equal(recording.head(outside), null);
  assert.ok(await recording.loadHead(inside));
  assert.ok(Math.abs(recording.head(inside).at(700, 699) - expected("long").weight) < 1e-5);
});

test("a head of this text that is handed over is taken, one of another is not", async () => {
  const recording = new Recording(packed("long"));
  assert.ok(await recording.receive(packed("long_head")));
  assert.ok(recording.head({stream: "decoder", layer: 0, head: 1}));
  assert.ok(!(await recording.receive(packed("long_causal"))));
});

test("only so many computed heads are kept", async () => {
  const recording = new Recording(packed("long"));
  for (let head = 0; head < 30; head++) recording.keep({stream: "decoder", layer: 0, head}, {known: 0, numbers: 0});
  assert.equal(recording.head({stream: "decoder", layer: 0, head: 0}), null);
  assert.ok(recording.head({stream: "decoder", layer: 0, head: 29}));
});

test("of heads whose weights came, only as many are kept as memory has room for", async () => {
  const recording = new Recording(packed("long"));
  for (let head = 0; head < 4; head++)
    recording.keep({stream: "decoder", layer: 0, head}, {known: 8192 * 8192, numbers: 0});
  const kept = [0, 1, 2, 3].map((head) => recording.head({stream: "decoder", layer: 0, head}) !== null);
  assert.deepEqual(kept, [false, false, true, true]);
});

test("of heads of 32,768 tokens only as many are kept as twelve of 8,192 tokens have numbers", async () => {
  const recording = new Recording(packed("long"));
  const numbers = 2 * 32768 * 128;
  for (let head = 0; head < 5; head++) recording.keep({stream: "decoder", layer: 0, head}, {known: 0, numbers});
  const kept = [0, 1, 2, 3, 4].map((head) => recording.head({stream: "decoder", layer: 0, head}) !== null);
  assert.deepEqual(kept, [false, false, true, true, true]);
});

test("of a file's layer no more heads are read than are kept", () => {
  const recording = new Recording(packed("long"));
  const layer = recording.stream("decoder").layers[1];
  for (const size of [{width: 128}, {}]) {
    const one = {...layer.terms[0], ...size, queries: 32768, keys: 32768};
    if (!size.width) delete one.width;
    recording.stream("decoder").layers[1] = {
      ...layer,
      terms: Object.fromEntries([0, 1, 2, 3, 4].map((at) => [at, one])),
    };
    const heads = recording.headsToRead({stream: "decoder", layer: 1, head: 4});
    assert.deepEqual(heads, size.width ? [4, 0, 1] : [4]);
  }
});

test("in a file the other heads of a layer are read for the search; a host that ranks is asked instead", () => {
  const recording = new Recording(packed("long"));
  assert.deepEqual(recording.headsToRead({stream: "decoder", layer: 1, head: 1}), [1, 0]);
  assert.deepEqual(recording.headsToRead({stream: "decoder", layer: 0, head: 1}), [1]);
  recording.ask = () => {};
  assert.deepEqual(recording.headsToRead({stream: "decoder", layer: 1, head: 1}), [1]);
});

test("a head that is looked at again is kept longest", async () => {
  const recording = new Recording(packed("long"));
  await recording.loadHead({stream: "decoder", layer: 1, head: 0});
  for (let head = 2; head < 13; head++) recording.keep({stream: "decoder", layer: 0, head}, {known: 0, numbers: 0});
  await recording.loadHead({stream: "decoder", layer: 1, head: 0});
  recording.keep({stream: "decoder", layer: 0, head: 13}, {known: 0, numbers: 0});
  assert.ok(recording.head({stream: "decoder", layer: 1, head: 0}));
  assert.equal(recording.head({stream: "decoder", layer: 0, head: 2}), null);
});

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
