// What Python packed for these tests, written anew by test_scripts.py before they run.

import {readFileSync} from "node:fs";
import {join} from "node:path";

const folder = process.env.ATTENTION_VIZ_FIXTURES;

/** The bytes of a payload, at an odd address as Streamlit's are. */
export function packed(name) {
  const bytes = readFileSync(join(folder, `${name}.bin`));
  const shifted = new Uint8Array(bytes.length + 3);
  shifted.set(bytes, 3);
  return shifted.subarray(3);
}

/** What Python says is in it. */
export function expected(name) {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), "utf-8"));
}

/** A long text's weights, (query, key), and 1 for each open cell. */
export function exact(name) {
  const [weights, open] = ["weights", "open"].map((kind) => readFileSync(join(folder, `${name}.${kind}`)));
  return {weights: new Float64Array(new Uint8Array(weights).buffer), open};
}
