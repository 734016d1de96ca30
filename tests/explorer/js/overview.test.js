import assert from "node:assert/strict";
import {test} from "node:test";

import {partInWords, readCharacters} from "../../../attention_viz/explorer/static/overview/characters.js";
import {leftByKey} from "../../../attention_viz/explorer/static/overview/overview.js";

const scroller = {scrollLeft: 500, clientWidth: 100, scrollWidth: 1000};

test("left and right are the screen's, the other keys go on or back in the text", () => {
  const at = (key, fromTheRight) => leftByKey(key, scroller, fromTheRight);
  for (const fromTheRight of [false, true]) {
    assert.ok(at("ArrowLeft", fromTheRight) < 500 && at("ArrowRight", fromTheRight) > 500);
    assert.equal(at("Enter", fromTheRight), null);
  }
  assert.deepEqual([at("Home", false), at("End", false), at("PageUp", false)], [0, 1000, 600]);
  assert.deepEqual([at("Home", true), at("End", true), at("PageUp", true)], [1000, 0, 400]);
  assert.ok(at("ArrowUp", false) > 500 && at("ArrowUp", true) < 500);
});

test("a token has its own bytes of a character, of two the first", () => {
  const parts = readCharacters([
    ["\u0e01", 3, [2, 1]],
    ["\u200b", 4, [1, 1, 1]],
    ["", 9, [2]],
  ]);
  assert.deepEqual([...parts.keys()], [3, 4, 5, 6, 9]);
  assert.equal(partInWords(parts.get(3), ""), "\u0e01, bytes 1 to 2 of 3");
  assert.equal(partInWords(parts.get(4), ""), "\u0e01, byte 3 of 3");
  // What can't be seen is spelled out.
  assert.equal(partInWords(parts.get(6), ""), "\u27e8U+200B\u27e9, byte 3 of 3");
  assert.equal(partInWords(parts.get(9), "\u27e8E0\u27e9"), "part of a character, \u27e8E0\u27e9");
});
