import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import test from "node:test";

import {readNumbers, writeNumber} from "../../../attention_viz/explorer/static/lesson/answers.js";

// `tests/lesson/export/test_tasks.py` checks Python with the same table.
const file = new URL("../../lesson/export/answers.json", import.meta.url);
const table = JSON.parse(readFileSync(file, "utf8"));

test("a number is read in every way that Python reads it", () => {
  for (const {text, numbers} of table) assert.deepEqual(readNumbers(text), numbers, JSON.stringify(text));
});

test("a number is written with three decimals at most, ties to even, and a true minus", () => {
  for (const [value, text] of /** @type {[number, string][]} */ ([
    [0.0625, "0.062"],
    [0.1875, "0.188"],
    [-0.0004, "0"],
    [-2.5, "−2.5"],
    [100, "100"],
    [1e22, "10000000000000000000000"],
  ]))
    assert.equal(writeNumber(value), text);
});
