import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {spell, textOf, visible} from "../../../attention_viz/explorer/static/data/spelling.js";

// The same table as Python's own function is tested on.
const table = JSON.parse(readFileSync(new URL("../spelling.json", import.meta.url), "utf8"));

test("a piece is a light mark and a text in which everything is seen", () => {
  assert.ok(table.length > 50);
  for (const {label, spelling, mark, text} of table)
    assert.deepEqual(spell(label, spelling), {mark, text}, `${spelling}: ${JSON.stringify(label)}`);
});

test("pieces of one word are read together, byte by byte", () => {
  assert.equal(textOf(["\u0120\u00f0\u0141", "\u0134", "\u00a9"], "byte-level"), " \u{1f4a9}");
  assert.equal(textOf(["<0xF0>", "<0x9F>", "<0x92>", "<0xA9>"], "sentencepiece"), "\u{1f4a9}");
  assert.equal(textOf(["un", "##happy"], "wordpiece"), "unhappy");
  assert.equal(textOf(["don</w>", "'t</w>"], "end-of-word"), "don't");
});

test("the tokenizer's marks become light signs before the text", () => {
  assert.deepEqual(spell("\u0120bank"), {mark: "\u00b7", text: "bank"});
  assert.deepEqual(spell("\u2581bank"), {mark: "\u00b7", text: "bank"});
  assert.deepEqual(spell("##ing"), {mark: "\u203f", text: "ing"});
  assert.deepEqual(spell("##"), {mark: "", text: "##"});
});

test("nothing is invisible, and nothing turns the direction of what follows", () => {
  assert.equal(visible(""), "\u2205");
  assert.equal(visible("\n"), "\u21b5");
  assert.equal(spell("\u010a").text, "\u21b5");
  assert.equal(visible("\u0007"), "\u2407");
  assert.equal(visible("\u0085"), "\u27e8U+0085\u27e9");
  assert.equal(visible("\u202enirts"), "\u27e8U+202E\u27e9nirts");
  assert.equal(visible("\u200d"), "\u27e8U+200D\u27e9");
  assert.equal(visible("  a "), "\u2423\u2423a\u2423");
  assert.equal(visible("\u0301x"), "\u25cc\u0301x");
});

test("joiners within a sign stay, so that a family stays one", () => {
  assert.equal(visible("👩\u200d👩\u200d👧"), "👩\u200d👩\u200d👧");
});
