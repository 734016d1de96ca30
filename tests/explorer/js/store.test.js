import assert from "node:assert/strict";
import {beforeEach, test} from "node:test";

import {createStore} from "../../../attention_viz/explorer/static/data/store.js";

// The browser's clock of frames, advanced by hand.
let frames = [];
const advance = () => {
  const due = frames;
  frames = [];
  for (const {tell} of due) tell();
};

beforeEach(() => {
  frames = [];
  globalThis.requestAnimationFrame = (tell) => frames.push({tell});
  globalThis.cancelAnimationFrame = (number) => frames.splice(number - 1, 1);
});

test("changes are gathered and told once a frame, by name", () => {
  const store = createStore({layer: 0, head: 0, scale: "linear"});
  const heard = [];
  store.listen((names) => heard.push([...names]));
  store.set({layer: 1});
  store.set({layer: 2, head: 5, scale: "linear"});
  assert.deepEqual(heard, []);
  assert.equal(store.state.layer, 2);
  advance();
  assert.deepEqual(heard, [["layer", "head"]]);
});

test("what stays the same is no change, not even where it is no number", () => {
  const store = createStore({weight: Number.NaN});
  store.set({weight: Number.NaN});
  assert.equal(frames.length, 0);
});

test("a change made while changes are told waits for the next frame", () => {
  const store = createStore({layer: 0, head: 0});
  const heard = [];
  store.listen((names) => {
    heard.push([...names]);
    store.set({head: store.state.layer});
  });
  store.set({layer: 3});
  advance();
  advance();
  assert.deepEqual(heard, [["layer"], ["head"]]);
});

test("once stopped, nobody hears anything more", () => {
  const store = createStore({layer: 0});
  store.listen(() => assert.fail("told"));
  store.set({layer: 1});
  store.stop();
  advance();
});
