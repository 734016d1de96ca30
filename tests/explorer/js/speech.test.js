import assert from "node:assert/strict";
import {test} from "node:test";

import {wavOf} from "../../../attention_viz/explorer/static/hearing/player.js";
import {
  during,
  framesOf,
  litAt,
  middleSecond,
  rowOfWord,
  spanOf,
  tellMoment,
  tellWord,
} from "../../../attention_viz/explorer/static/hearing/speech.js";

const frames = {count: 10, step: 0.1, seconds: 1};
const word = {text: "river", rows: [1, 2], start: 0.3, end: 0.6};
const text = (parts) => parts.map(([said]) => said).join("");

test("only frames that begin within the sound count", () => {
  const place = Array.from({length: 20}, (_, at) => [at * 0.1]);
  assert.deepEqual(framesOf({place, count: 20}, 0.55), {count: 6, step: 0.1, seconds: 0.55});
});

test("a word's weights are the mean of the rows of its pieces, and of several heads; or of the rows that have read it", () => {
  const head = {at: (row, frame) => (frame === 0 ? row / 10 : 0)};
  const other = {at: () => 0.1};
  assert.ok(Math.abs(rowOfWord([head], word, frames, false, 5)[0] - 0.15) < 1e-6);
  assert.ok(Math.abs(rowOfWord([head], word, frames, true, 5)[0] - 0.25) < 1e-6);
  assert.ok(Math.abs(rowOfWord([head, other], word, frames, false, 5)[0] - 0.125) < 1e-6);
  // The last row has none after it.
  assert.ok(Math.abs(rowOfWord([head], {...word, rows: [4]}, frames, true, 5)[0] - 0.4) < 1e-6);
});

test("a ribbon ends on the middle 80 % of a row's weight", () => {
  const [from, to] = spanOf(Float32Array.of(0, 0, 0.5, 0.5, 0, 0, 0, 0, 0, 0), frames);
  assert.ok(Math.abs(from - 0.22) < 1e-6 && Math.abs(to - 0.38) < 1e-6);
});

test("the middle of what is heard has half of the row's weight before it, and is nowhere where there is next to none", () => {
  const line = Float32Array.of(0, 0.2, 0, 0, 0.3, 0, 0, 0, 0, 0.1);
  assert.ok(Math.abs(middleSecond(line, frames) - (0.4 + 0.1 / 3)) < 1e-6);
  assert.equal(middleSecond(Float32Array.of(0, 0.05, 0, 0, 0, 0, 0, 0, 0, 0), frames), null);
});

test("weight while a word is spoken is out of all frames, never rescaled", () => {
  const line = Float32Array.of(0, 0, 0, 0.1, 0.2, 0.1, 0, 0, 0, 0);
  assert.ok(Math.abs(during(line, 0.3, 0.6, 0.1) - 0.4) < 1e-6);
});

test("the word with the most weight at a second is lit, and none where all have next to nothing", () => {
  const lines = [Float32Array.of(0.3, 0.01), Float32Array.of(0.1, 0.01)];
  assert.equal(litAt(lines, 0.05, 0.1), 0);
  assert.equal(litAt(lines, 0.15, 0.1), -1);
});

test("what is heard for a word is told: a third of it, all of it, another place, or the silence after", () => {
  const line = (cells) => Float32Array.from({length: 10}, (_, at) => cells[at] ?? 0);
  assert.equal(
    text(tellWord(word, line({3: 0.8}), frames, false)),
    "Before “river” it attends to the word’s first third: 0.80",
  );
  assert.equal(
    text(tellWord(word, line({3: 0.3, 4: 0.3, 5: 0.3}), frames, true)),
    "After “river” it attends to that word: 0.90",
  );
  assert.equal(text(tellWord(word, line({0: 1}), frames, false)), "Before “river” it attends to 0.01–0.09 s: 0.80");
  assert.equal(
    text(tellWord(word, line({0: 0.1}), frames, false)),
    "Before “river” it attends to frames after the audio: 0.90",
  );
  assert.match(
    text(tellWord({...word, start: null, end: null}, line({3: 0.8}), frames, false)),
    /attends to 0\.31–0\.39 s/,
  );
});

test("what a moment attends to, and what attends to it", () => {
  const line = Float32Array.from({length: 10}, (_, at) => Number(at === 7));
  assert.equal(text(tellMoment(line, 2, frames, false)), "At 0.20 s it attends to 0.71–0.79 s: 0.80");
  assert.equal(text(tellMoment(line, 2, frames, true)), "The most attention to 0.20 s comes from 0.70 s: 1.00");
});

test("the file that is played says how long it is, and holds the samples", () => {
  const file = wavOf(Uint8Array.of(1, 0, 255, 127), 16000);
  const view = new DataView(file.buffer);
  assert.equal(new TextDecoder().decode(file.subarray(0, 4)), "RIFF");
  assert.deepEqual([view.getUint32(24, true), view.getUint32(40, true), view.getInt16(46, true)], [16000, 4, 32767]);
});
