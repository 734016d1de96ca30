import assert from "node:assert/strict";
import {test} from "node:test";

import {
  depthOf,
  largestOf,
  looksAt,
  mainPart,
  meaningOf,
  missingOf,
  signed,
  tiny,
  wordAt,
  wordsFor,
} from "../../../attention_viz/explorer/static/why/reading.js";
import {storyOf} from "../../../attention_viz/explorer/static/why/story.js";

test("numbers have a sign, but for what is next to nothing", () => {
  assert.equal(signed(2.864), "+2.86");
  assert.equal(signed(-1.074), "−1.07");
  assert.equal(signed(-0.004), "0.00");
  assert.equal(tiny(-2.2e-7), "2×10⁻⁷");
  assert.equal(tiny(0), "0");
});

test("what is missing without a head is told beside what it wrote", () => {
  assert.match(meaningOf(2.86, 3.04), /^Confirmed/);
  assert.equal(meaningOf(0.16, 0.125), "Confirmed: ablation removes 78\u00a0% of its contribution.");
  assert.match(meaningOf(0.82, -0.04), /^Later parts compensate/);
  assert.match(meaningOf(-0.26, 1.11), /^It acts through later parts/);
  assert.match(meaningOf(1.0, 1.6), /^It also acts/);
  assert.match(meaningOf(0.05, 0.02), /^Almost no effect/);
});

test("colours deepen by roots up to the fullest", () => {
  assert.equal(depthOf(0, 2), 0);
  assert.equal(depthOf(-0.5, 2), 0.5);
  assert.equal(depthOf(9, 2), 1);
  assert.equal(depthOf(1, 0), 0);
});

/** A number of one layer of three heads: the first writes most, the second is made up for. */
const header = {
  ...{
    name: "a",
    more: "“Mary”",
    less: "“John”",
    total: 6,
    remainder: 0,
    side: "output",
    at: 3,
    mlps: [0],
    own: true,
    unit: "word",
    units: {query: "word", key: "word"},
  },
  ...{queries: ["Mary", "and", "John", "to"], keys: ["Mary", "and", "John", "to"], heads: [3], groups: [], words: []},
  map: [[2.9, 0.8, -0.2]],
  listed: /** @type {[number, number][]} */ ([
    [0, 0],
    [0, 1],
    [0, 2],
  ]),
  sources: /** @type {Record<string, [number, number, number][]>} */ ({
    "0 0": [
      [0, 0.1, -0.1],
      [2, 0.7, 3],
    ],
    "0 1": [[0, 0.6, 0.8]],
    "0 2": [[3, 0.9, -0.2]],
  }),
};

/**
 * The same number of a text of these words.
 * @param {string[]} keys
 */
function said(keys, unit = "word") {
  return {...header, queries: keys, keys, units: {query: unit, key: unit}};
}

test("a word is quoted with its number", () => {
  const twice = said(["John\u2081", "and", "John\u2082"]);
  assert.equal(wordAt(twice, "key", 1), "“and”");
  assert.equal(wordAt(twice, "key", 2), "“John₂”");
  assert.equal(
    looksAt(twice, [
      [0, 0.16, 0],
      [1, 0.04, 0],
      [2, 0.74, 0],
    ]),
    "“John₂” 0.74 · “John₁” 0.16",
  );
});

test("a patch and a frame are no words in quotes, not even where words look at them", () => {
  const heard = {...said(["patch 13, 11", "patch 0, 2"], "patch"), queries: ["She"]};
  heard.units.query = "word";
  assert.equal(wordAt(heard, "key", 0), "patch 13, 11");
  assert.equal(wordAt(heard, "query", 0), "“She”");
  const turned = {...heard, queries: ["\u2068\u0639\u2069"]};
  assert.equal(wordAt(turned, "query", 0), "“\u2068\u0639\u2069”", "set apart, or the words around it change places");
  const special = {...turned, queries: ["[CLS]"], specials: {query: [0], key: []}};
  assert.equal(wordAt(special, "query", 0), "[CLS]", "a special token isn't a word of the text");
  assert.equal(looksAt(heard, [[1, 0.5, 0]]), "patch 0, 2 0.50");
});

test("a sentence names a patch by where it is, as Explore does, and a list by its row and column", () => {
  const spoken = {query: {}, key: {1: "a patch at the upper left"}};
  const seen = {...header, keys: ["what", "patch 0, 0", "John", "to"], spoken};
  const sources = {"0 0": /** @type {[number, number, number][]} */ ([[1, 0.9, 3]])};
  assert.match(storyOf({...seen, sources}, new Map())[0].words, /it attends to a patch at the upper left$/);
  assert.match(looksAt(seen, sources["0 0"]), /patch 0, 0/);
});

test("what is missing is known of the heads that were silenced, and orders them", () => {
  const missing = missingOf(
    header,
    new Map([
      ["0 1", 6.5],
      ["0 2", 4.9],
    ]),
  );
  assert.deepEqual(
    missing.map((row) => row.map((one) => one && Number(one.toFixed(2)))),
    [[null, -0.5, 1.1]],
  );
  assert.deepEqual(largestOf(missing, 1), [[0, 2]]);
  assert.deepEqual(largestOf(missing, 5).length, 2);
});

test("the story of a word: who writes most, why it looks there, and what is made up for once that is known", () => {
  const [first, second, ...none] = storyOf(header, new Map());
  assert.equal(first.words, "0·0 contributes most: it attends to “John” and suppresses it");
  const [against] = storyOf({...header, total: -6}, new Map());
  assert.equal(against.words, "0·0 contributes most, with the opposite sign: it attends to “John” and suppresses it");
  const elsewhere = {
    ...header.sources,
    "0 0": /** @type {[number, number, number][]} */ ([
      [2, 0.9, 0.1],
      [1, 0.1, -3],
    ]),
  };
  assert.match(
    storyOf({...header, sources: elsewhere}, new Map())[0].words,
    /it gets its largest part from “and”$/,
    "the word that it attends to most isn't the one that its effect comes from",
  );
  assert.deepEqual(storyOf({...header, sources: elsewhere}, new Map())[1].press, {pair: [0, 0, 3, 1]});
  assert.deepEqual(second.press, {pair: [0, 0, 3, 2]});
  assert.deepEqual(none, []);
  const known = storyOf(
    header,
    new Map([
      ["0 0", 3],
      ["0 1", 6.1],
    ]),
  );
  assert.equal(known[2].words, "0·1 attends to “Mary”, but later parts compensate for it");
  assert.deepEqual(known[2].press, {head: [0, 1]});
  assert.deepEqual(storyOf({...header, listed: []}, new Map()), []);
});

test("the story of a score: who writes the key, or the word itself", () => {
  const score = {
    ...header,
    less: "",
    side: "key",
    at: 3,
    sources: {"0 0": /** @type {[number, number, number][]} */ ([[2, 0.9, 3]])},
  };
  assert.equal(
    storyOf(score, new Map())[0].words,
    "Head 0·0 contributes most to the key: at “to” it attends to “John”, the previous word",
  );
  assert.match(storyOf({...score, total: -6}, new Map())[0].words, /most to the key, against the score: at “to”/);
  const itself = {...score, side: "query", groups: [{kind: "Word embedding", towards: "", sum: 8.5, lines: []}]};
  const [word, other] = storyOf(itself, new Map());
  assert.match(
    word.words,
    /^Of the heads, 0·0 contributes most to the query: /,
    "the headline says that the word does",
  );
  assert.deepEqual(other.press, {side: "key"});
});

test("a score is answered by the largest part that carries it, and its story begins with a head that does", () => {
  const groups = [
    {kind: "Heads", towards: "", sum: 1, lines: []},
    {kind: "Word embedding", towards: "", sum: 2, lines: []},
    {kind: "Biases", towards: "", sum: -5, lines: []},
  ];
  const score = {...header, less: "", side: "key", groups, total: 2};
  assert.deepEqual(mainPart(score), {kind: "Word embedding", sum: 2, words: "the key word itself"});
  assert.equal(mainPart({...score, total: -2})?.kind, "Biases");
  assert.equal(mainPart({...score, groups: []}), null);
  const map = [[-2.9, 3.5, 0.2]];
  const [first] = storyOf({...score, map, groups: groups.slice(0, 1)}, new Map());
  assert.match(first.words, /^Head 0·1 contributes most to the key: /);
});

test("each order of heads is spoken of in words of its own", () => {
  assert.equal(wordsFor("wrote").list, "Largest heads");
  assert.equal(wordsFor("silenced").missing, "lost by ablation");
  assert.equal(wordsFor("put").missing, "lost by patching");
});
