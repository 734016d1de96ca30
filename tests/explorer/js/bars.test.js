import assert from "node:assert/strict";
import {test} from "node:test";

import {restWords} from "../../../attention_viz/explorer/static/parts/bars.js";

test("one special token takes its share, and several take theirs", () => {
  assert.equal(restWords(["</s>"], true, 0.04), "</s> takes 4 % of the average word\u2019s row.");
  assert.equal(restWords(["[CLS]", "[SEP]"], true, 0.531), "[CLS] and [SEP] take 53 % of the average word\u2019s row.");
  assert.equal(
    restWords(["The"], false, 0.5),
    "The first token, \u201cThe\u201d, takes 50 % of the average word\u2019s row.",
  );
});
