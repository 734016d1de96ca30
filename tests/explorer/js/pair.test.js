import {test} from "node:test";
import assert from "node:assert/strict";

import {
  findingIn,
  hasLinks,
  keyFollows,
  letsGo,
  linksOf,
  linksWords,
  pairIn,
  pairOfPinned,
} from "../../../attention_viz/explorer/static/data/pair.js";
import {layerNumber, layerPlace, numbered, placed} from "../../../attention_viz/explorer/static/heads/numbers.js";

const axis = (...texts) => ({
  labels: texts,
  spellings: texts.map((text) => ({mark: "", text})),
  dimmed: Uint8Array.from(texts, (text) => Number(text.startsWith("["))),
  words: Uint8Array.from(texts, (text) => Number(!/^[[,]/u.test(text))),
  count: texts.length,
});
const words = axis("[CLS]", "bank", ",", "river");
const stream = (name) => ({name, own: true, queries: words, keys: words, layers: [{number: 4}, {number: 7}]});
// A head whose heaviest cells are listed first.
const head = (...cells) => ({
  strongest: (rows, columns, count, accepts) => cells.filter(({query, key}) => accepts(query, key)).slice(0, count),
});
const places = Int32Array.of(0, 1, 2, 3);
const drawn = (name, one) => ({stream: stream(name), head: one, rows: places, columns: places});
const recording = (...findings) => ({header: {findings}, streams: [stream("encoder"), stream("decoder")]});

test("a link of two words is between two of them, and a decoder's first token is never looked at", () => {
  const accepts = linksWords(stream("encoder"));
  assert.ok(accepts(1, 3) && accepts(3, 1));
  for (const [query, key] of [
    [1, 1],
    [1, 2],
    [0, 1],
    [3, 0],
  ])
    assert.ok(!accepts(query, key), `${query} ${key}`);
  const said = axis("bank", "of", "river");
  assert.ok(!linksWords({name: "decoder", own: true, queries: said, keys: said})(2, 0));
  assert.ok(linksWords({name: "encoder", own: true, queries: said, keys: said})(2, 0));
});

test("a head is told by what was found in it, whatever is heavier", () => {
  const found = {stream: "encoder", layer: 7, head: 2, query: 3, key: 1};
  assert.equal(layerPlace(stream("encoder").layers, 7), 1);
  assert.equal(findingIn(recording(found), "encoder", {layer: 1, head: 2}), found);
  assert.equal(findingIn(recording(found), "decoder", {layer: 1, head: 2}), undefined);
  const at = {layer: 1, head: 2};
  assert.deepEqual(pairIn(recording(found), drawn("encoder", head({query: 1, key: 3})), at), {query: 3, key: 1});
});

test("else by its strongest link of two words, else of any two tokens that aren't special", () => {
  const at = {layer: 0, head: 0};
  const cells = [
    {query: 1, key: 0},
    {query: 1, key: 2},
    {query: 1, key: 3},
  ];
  assert.deepEqual(pairIn(recording(), drawn("encoder", head(...cells)), at), {query: 1, key: 3});
  assert.deepEqual(pairIn(recording(), drawn("encoder", head(...cells.slice(0, 2))), at), {query: 1, key: 2});
  assert.deepEqual(pairIn(recording(), drawn("encoder", head()), at), {query: 1, key: 1});
  assert.equal(pairIn(recording(), drawn("encoder", null), at), null);
});

test("its links are looked for once, until other rows or columns are on the screen", () => {
  let searches = 0;
  const counted = {
    strongest: () => {
      searches += 1;
      return [{query: 3, key: 1}];
    },
  };
  const one = drawn("encoder", counted);
  assert.ok(!hasLinks(counted, places, places));
  assert.deepEqual(linksOf(counted, places, places, one.stream), [{query: 3, key: 1}]);
  assert.ok(hasLinks(counted, places, places));
  assert.deepEqual(pairIn(recording(), one, {layer: 0, head: 0}), {query: 3, key: 1});
  assert.equal(searches, 1);
  const fewer = places.subarray(1);
  assert.ok(!hasLinks(counted, fewer, places) && !hasLinks(counted, places, fewer));
  linksOf(counted, fewer, places, one.stream);
  assert.equal(searches, 2);
});

test("a query alone is told by what it looks at most among words, and by a special token only where nothing else counts", () => {
  const row = (weights) => ({
    strongest: ([query], columns, count, accepts) =>
      [...columns]
        .filter((key) => accepts(query, key))
        .map((key) => ({query, key, weight: weights[key]}))
        .sort((a, b) => b.weight - a.weight)
        .slice(0, count),
  });
  // The pair before is another query's: its key says nothing of this one.
  const before = {query: null, key: null, pairQuery: 3, pairKey: 1};
  const told = (weights, query = 1, name = "encoder") =>
    pairOfPinned(before, drawn(name, row(weights)), query)?.pairKey;
  assert.equal(told([0.88, 0.1, 0.015, 0.005]), 3);
  assert.equal(told([0.88, 0.1, 0.02, 0]), 2);
  assert.equal(told([0.9, 0.1, 0, 0]), 0);
  assert.equal(told([0, 1, 0, 0]), 1);
  assert.equal(told([0.1, 0.2, 0, 0.7], 3), 1);
  assert.deepEqual(pairOfPinned(before, drawn("encoder", row([0, 0, 0, 1])), 1), {
    ...{pairQuery: 1, pairKey: 3, pairChosen: true},
  });
  assert.equal(pairOfPinned(before, drawn("encoder", null), 1), null);
});

test("a pinned query's key follows until a key is chosen, too, and let go it is the head's own pair again", () => {
  const alone = {query: 1, key: 1, pairQuery: 1, pairKey: 3};
  assert.ok(keyFollows(alone));
  assert.ok(!keyFollows({...alone, key: 3}));
  assert.ok(!keyFollows({...alone, query: null, key: null}));
  const nothing = {pairQuery: null, pairKey: null, pairChosen: false};
  assert.deepEqual(pairOfPinned(alone, drawn("encoder", null), null), nothing);
  assert.equal(pairOfPinned({...alone, key: 3}, drawn("encoder", null), null), null);
});

test("hosts speak of layers by their numbers, and a number that isn't there means the next one that is", () => {
  const layers = [1, 3].map((number) => ({number, heads: 2}));
  const two = /** @type {any} */ ({
    stream: () => ({name: "decoder", layers}),
    nearest: (/** @type {object} */ at) => at,
  });
  assert.deepEqual(
    [0, 1].map((place) => layerNumber(layers, place)),
    [1, 3],
  );
  assert.deepEqual(
    [0, 1, 2, 3].map((number) => layerPlace(layers, number)),
    [-1, 0, -1, 1],
  );
  const meant = [0, 1, 2, 3, 9].map((layer) => placed(two, {stream: "decoder", layer, head: 1}).layer);
  assert.deepEqual(meant, [0, 0, 1, 1, 1]);
  assert.equal(numbered(two, {stream: "decoder", layer: 1, head: 0}).layer, 3);
  assert.equal(layerNumber([{}, {}], 1), 1);
});

test("what is pinned is let go where another pair is asked for, also one of the same query", () => {
  const pinned = {query: 4, key: 7, pairQuery: 4, pairKey: 7};
  for (const [asked, lets] of [
    [{pairQuery: 4, pairKey: 7}, false],
    [{pairQuery: 4, pairKey: 2}, true],
    [{pairQuery: 3, pairKey: 7}, true],
    [{}, true],
  ]) {
    assert.equal(letsGo(pinned, asked), lets);
    const state = {...pinned, ...asked, ...(lets ? {query: null, key: null} : {})};
    assert.ok(!keyFollows(state));
  }
  // A query alone, whose key follows the head, stays pinned as long as its own pair is asked for.
  const row = {query: 4, key: null, pairQuery: 4, pairKey: 1};
  assert.ok(!letsGo(row, {pairQuery: 4, pairKey: 1}) && letsGo(row, {pairQuery: 4, pairKey: 2}));
  assert.ok(!letsGo({...pinned, query: null, key: null}, {pairQuery: 1, pairKey: 1}));
});
