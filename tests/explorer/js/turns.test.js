import {afterEach, beforeEach, test} from "node:test";
import assert from "node:assert/strict";

import {createTurns} from "../../../attention_viz/explorer/static/turns.js";

const axis = {
  labels: ["a", "b"],
  words: Uint8Array.of(1, 1),
  count: 2,
  dimmed: new Uint8Array(2),
  spellings: [
    {mark: "", text: "boy"},
    {mark: "", text: "bag"},
  ],
};
const stream = {name: "encoder", own: true, queries: axis, keys: axis, layers: [{heads: 1}]};
/** @type {(() => void)[]} */
let frames = [];
/** @type {unknown[]} */
let seen = [];

beforeEach(() => {
  [frames, seen] = [[], []];
  globalThis.requestAnimationFrame = (act) => frames.push(act);
  globalThis.cancelAnimationFrame = (number) => {
    if (number) frames[number - 1] = () => {};
  };
});
afterEach(() => {
  delete globalThis.requestAnimationFrame;
  delete globalThis.cancelAnimationFrame;
});

function turns(long) {
  const head = {
    strongest: () => {
      seen.push("search");
      return [{query: 1, key: 0, weight: 0.9}];
    },
  };
  const state = {stream: "encoder", layer: 0, head: 0, preview: null, scale: "linear", hideSpecial: false, loaded: 0};
  const recording = {header: {long, findings: []}, streams: [stream], stream: () => stream, head: () => head};
  const view = {
    recording: {...recording, picture: () => head},
    store: {state: {...state, pairQuery: null, pairKey: null, pairChosen: false}, set: (values) => seen.push(values)},
  };
  const part = (name) => ({draw: (changed) => seen.push([name, view.now.pair?.query ?? null, ...changed])});
  return createTurns(view, {first: [part("map")], later: [part("lists")]});
}

test("of a long text a head's map is drawn before its links are looked for, and then all that tells them", () => {
  const drawn = turns({id: "a"});
  drawn.draw(new Set(["layer", "loaded"]), () => seen.push("pair"));
  assert.deepEqual(seen.splice(0), [["map", null, "layer", "loaded"]]);
  frames.splice(0).forEach((act) => act());
  assert.deepEqual(seen.splice(0), ["search", {loaded: 1}]);
  drawn.draw(new Set(["loaded"]), () => seen.push("pair"));
  // What is drawn later hears of all that has changed since it was drawn.
  assert.deepEqual(seen.splice(0), ["pair", ["map", 1, "loaded"], ["lists", 1, "layer", "loaded"]]);
});

test("of a short one all is drawn at once, and of a head or a token that is pointed at what lists tell a frame later", () => {
  const drawn = turns(undefined);
  drawn.draw(new Set(["layer"]), () => seen.push("pair"));
  assert.deepEqual(seen.splice(0), ["search", "pair", ["map", 1, "layer"], ["lists", 1, "layer"]]);
  drawn.draw(new Set(["preview"]), () => seen.push("pair"));
  assert.deepEqual(seen.splice(0), [["map", 1, "preview"]]);
  frames.splice(0).forEach((act) => act());
  assert.deepEqual(seen.splice(0), [["lists", 1, "preview"]]);
  drawn.draw(new Set(["overQuery", "overLine"]), () => seen.push("pair"));
  assert.deepEqual(seen.splice(0), [["map", 1, "overQuery", "overLine"]]);
  // A click is told everywhere at once, with what was still to be told.
  drawn.draw(new Set(["query"]), () => seen.push("pair"));
  assert.deepEqual(seen.splice(0), [
    ["map", 1, "query"],
    ["lists", 1, "overQuery", "overLine", "query"],
  ]);
  frames.splice(0).forEach((act) => act());
  assert.deepEqual(seen, []);
});
