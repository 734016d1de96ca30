import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import test from "node:test";

import {
  checkCells,
  checkNumber,
  checkOption,
  readNumbers,
  writeNumber,
} from "../../../attention_viz/explorer/static/lesson/answers.js";

// What Python reads and says of the same: `tests/lesson/export/test_tasks.py` wrote it, and checks the first table itself.
const read = (/** @type {string} */ path) => JSON.parse(readFileSync(path, "utf8"));
const table = read(new URL("../../lesson/export/answers.json", import.meta.url).pathname);
const made = process.env["ATTENTION_VIZ_ANSWERS"];

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

test("every answer of every exercise gets the words that Python gives it", {skip: !made}, () => {
  let wrong = 0;
  for (const {key, given, right, words, understood} of read(made ?? "")) {
    const found =
      key.kind === "number"
        ? checkNumber(key, given)
        : key.kind === "options"
          ? checkOption(key, given)
          : checkCells(key, given);
    assert.deepEqual(found, {right, words, understood}, JSON.stringify(given));
    wrong += Number(!right);
  }
  assert.ok(wrong > 100);
});
