import assert from "node:assert/strict";
import {test} from "node:test";

import {
  numbersAt,
  numberOf,
  readLayer,
  readMask,
  readPayload,
  readPlane,
  weightValues,
} from "../../../attention_viz/explorer/static/data/payload.js";
import {expected, packed} from "./fixtures.js";

const SHIFT = [0, 1, 2];

test("the header and the bytes behind it are told apart wherever the payload lies in memory", () => {
  const bytes = packed("many_kinds");
  const {header, body} = readPayload(bytes);
  assert.equal(header.version, 1);
  assert.equal(header.model, "random");
  assert.deepEqual(
    header.streams.map(({name}) => name),
    ["encoder", "decoder", "cross"],
  );
  for (const shift of SHIFT) {
    const moved = new Uint8Array(bytes.length + shift);
    moved.set(bytes, shift);
    const again = readPayload(moved.subarray(shift));
    assert.deepEqual(again.header, header);
    assert.deepEqual(again.body, body);
  }
});

test("labels arrive as they were, however strange", () => {
  const {header} = readPayload(packed("many_kinds"));
  assert.deepEqual(header.axes[0].labels, expected("many_kinds").labels);
});

test("each number of a weight stands for the middle of its interval; 0 and 1 are exact", () => {
  const values = weightValues({levels: 4});
  assert.deepEqual([...values], [0, 0.1875, 0.375, 0.625, 0.875, 1]);
});

test("the weights of a layer lie key by key, and none is off by more than the header says", async () => {
  const payload = readPayload(packed("many_kinds"));
  const {header} = payload;
  const values = weightValues(header);
  const [cross] = header.streams.filter(({name}) => name === "cross");
  const {weights, rows} = await readLayer(payload, cross.layers[0]);
  const [queries, keys] = [7, 13];
  assert.equal(weights.length, 3 * queries * keys);
  expected("many_kinds").streams.cross[0].forEach((head, number) =>
    head.weights.forEach((row, query) => {
      row.forEach((weight, key) => {
        const drawn = values[weights[number * queries * keys + key * queries + query]];
        assert.ok(Math.abs(drawn - weight) <= header.error, `${drawn} for ${weight}`);
      });
      assert.ok(Math.abs(rows[number * queries + query] - head.sums[query]) < 1e-5);
    }),
  );
});

test("an odd number of weights loses none of them", async () => {
  const payload = readPayload(packed("many_kinds"));
  const {layers} = payload.header.streams[1];
  const {weights} = await readLayer(payload, layers[0]);
  assert.equal(weights.length, 4 * 7 * 7);
});

test("a causal pattern needs no bytes: with fewer queries than keys the last query sees every key", async () => {
  const blocked = await readMask(null, {kind: "causal", queries: 2, keys: 3});
  // (key, query)
  assert.deepEqual([...blocked], [0, 0, 0, 0, 1, 0]);
});

test("any other pattern comes as bits", async () => {
  const payload = readPayload(packed("many_kinds"));
  const {masks, streams} = payload.header;
  const number = streams[2].layers[0].blocked[1];
  assert.equal(masks[number].kind, "bits");
  const blocked = await readMask(payload, masks[number]);
  const wanted = expected("many_kinds").streams.cross[0][1].blocked;
  for (let query = 0; query < 7; query++)
    for (let key = 0; key < 13; key++)
      assert.equal(blocked[key * 7 + query] === 1, wanted[query][key], `query ${query}, key ${key}`);
});

test("the atlas's thumbnails come in the same frame, head by head and key by key", async () => {
  const payload = readPayload(packed("atlas"));
  const {header} = payload;
  const levels = await readPlane(payload, header.plane);
  const heads = expected("atlas");
  assert.equal(levels.length, heads.length * 7 * 7);
  assert.equal(
    header.layers.reduce((sum, layer) => sum + layer.heads, 0),
    heads.length,
  );
  heads.forEach(({weights, blocked}, number) =>
    weights.forEach((row, query) =>
      row.forEach((weight, key) => {
        const level = levels[number * 49 + key * 7 + query];
        assert.equal(level === 255, blocked[query][key]);
        const drawn = level === 255 ? 0 : (level / 254) * header.tops[number];
        assert.ok(Math.abs(drawn - weight) <= 0.5 / 254 + 1e-6, `${drawn} for ${weight}`);
      }),
    ),
  );
});

test("a damaged plane is told where it is read, and nowhere else", async () => {
  const {header, body} = readPayload(packed("atlas"));
  const [offset, length] = header.plane;
  const damaged = body.slice();
  damaged.fill(255, offset, offset + length);
  await assert.rejects(readPlane({body: damaged}, header.plane), TypeError);
  const cut = readPlane({body}, [offset, length - 8]);
  await assert.rejects(cut, TypeError);
});

test("a weight gets the number that Python gives it", () => {
  assert.deepEqual(
    [0, 0.5 / 4000, 0.6 / 4000, 1 / 4000, 0.5, 0.9999999, 1, 1.0000001].map((weight) => numberOf(weight, 4000)),
    [0, 0, 1, 1, 2000, 4000, 4001, 4001],
  );
});

test("numbers that were left as they are come from any address", () => {
  const bytes = new Uint8Array(24);
  for (const shift of [0, 3]) {
    const body = bytes.subarray(shift);
    new DataView(body.buffer, body.byteOffset).setFloat64(8, 0.1, true);
    assert.deepEqual([...numbersAt({body}, [8, 8], Float64Array)], [0.1]);
  }
});
