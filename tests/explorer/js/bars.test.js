import assert from "node:assert/strict";
import {test} from "node:test";

import {leftOutOf, restWords} from "../../../attention_viz/explorer/static/parts/bars.js";

test("one special token takes its share, and several take theirs", () => {
  assert.equal(restWords(["</s>"], true, 0.04), "</s> takes 4 % of the average word\u2019s row.");
  assert.equal(restWords(["[CLS]", "[SEP]"], true, 0.531), "[CLS] and [SEP] take 53 % of the average word\u2019s row.");
  assert.equal(
    restWords(["The"], false, 0.5),
    "The first token, \u201cThe\u201d, takes 50 % of the average word\u2019s row.",
  );
});

test("the list says that links of words to themselves aren't in it, if the strongest would be", () => {
  const weights = [
    [0.9, 0.05, 0.05],
    [0.1, 0.22, 0.68],
    [0.3, 0.5, 0.2],
  ];
  const head = {at: (query, key) => weights[query][key], isBlocked: () => false};
  const all = Int32Array.of(0, 1, 2);
  const drawn = {rows: all, columns: all, stream: {own: true, queries: {words: Uint8Array.of(0, 1, 1)}}};
  assert.equal(leftOutOf(drawn, head, 0.05), "Left out: each word\u2019s link to itself, up to 0.22.");
  const slots = {...drawn.stream.queries, named: ["latent 0", "latent 1", "latent 2"]};
  const among = {...drawn, stream: {...drawn.stream, queries: slots}};
  assert.equal(leftOutOf(among, head, 0.05), "Left out: each position\u2019s link to itself, up to 0.22.");
  const seen = {...drawn, stream: {...drawn.stream, name: "picture 2"}};
  assert.equal(leftOutOf(seen, head, 0.05), "Left out: each position\u2019s link to itself, up to 0.22.");
  assert.equal(leftOutOf(drawn, head, 0.3), "");
  assert.equal(leftOutOf({...drawn, columns: Int32Array.of(0, 2)}, head, 0.05).slice(-5), "0.20.");
  assert.equal(leftOutOf({...drawn, stream: {...drawn.stream, own: false}}, head, 0.05), "");
});
