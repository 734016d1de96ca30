import assert from "node:assert/strict";
import {test} from "node:test";

import {readPayload, weightValues} from "../../../attention_viz/explorer/static/data/payload.js";
import {readHead} from "../../../attention_viz/explorer/static/data/terms.js";
import {packed} from "./fixtures.js";

test("a head that is handed over says whose it is", () => {
  const {header} = readPayload(packed("long_causal"));
  assert.deepEqual([header.of, header.stream, header.layer, header.head], ["this text", "decoder", 0, 0]);
});

test("a head's numbers are few beside its weights", () => {
  const bytes = packed("long_causal");
  assert.ok(bytes.length < (1103 * 1103) / 2);
});

test("the largest weight comes along", async () => {
  const {header, body} = readPayload(packed("long_open"));
  const found = await readHead({body}, header.entry, header.masks, weightValues({levels: 4000}));
  const [best] = found.strongest(
    Int32Array.from({length: 1103}, (_, at) => at),
    Int32Array.of(...Array(1103).keys()),
    1,
  );
  assert.ok(Math.abs(best.weight - found.most) < 1e-5);
});
