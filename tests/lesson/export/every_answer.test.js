import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import test from "node:test";

import {checkCells, checkNumber, checkOption} from "../../../attention_viz/explorer/static/lesson/answers.js";

// What Python says of the same answers: `test_tasks.py` writes it, and runs this.
const made = JSON.parse(readFileSync(process.env["ATTENTION_VIZ_ANSWERS"] ?? "", "utf8"));

test("every answer of every exercise gets the words that Python gives it", () => {
  let wrong = 0;
  for (const {key, given, right, words, understood} of made) {
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
