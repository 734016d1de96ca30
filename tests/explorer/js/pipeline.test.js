import {test} from "node:test";
import assert from "node:assert/strict";

import {chainOf, reasonOf, scaling, stepTold} from "../../../attention_viz/explorer/static/pipeline/chain.js";
import {linesOf, termTold} from "../../../attention_viz/explorer/static/pipeline/factors.js";
import {addsTold, headsShown} from "../../../attention_viz/explorer/static/pipeline/joined.js";
import {
  hasPair,
  lanesAmong,
  openPair,
  readOpened,
  signed,
  written,
} from "../../../attention_viz/explorer/static/pipeline/numbers.js";
import {sumTold} from "../../../attention_viz/explorer/static/pipeline/rest.js";
import {placesFor} from "../../../attention_viz/explorer/static/pipeline/geometry.js";
import {placeBeside} from "../../../attention_viz/explorer/static/pipeline/opening.js";
import {sumTerms} from "../../../attention_viz/explorer/static/pipeline/sum.js";
import {foldOf} from "../../../attention_viz/explorer/static/pipeline/words.js";
import {entryTold, exponentials, weightTold} from "../../../attention_viz/explorer/static/pipeline/told.js";
import {expected, packed} from "./fixtures.js";

const near = (one, other, apart = 1e-4) => assert.ok(Math.abs(one - other) <= apart, `${one} is not ${other}`);
const plain = (said) => said.map((one) => (typeof one === "string" ? one : one[0])).join("");
const openedPair = (name, count = 6) => {
  const opened = readOpened(packed(name));
  const {pair} = expected(name);
  return {opened, pair: openPair(opened, ...pair, count), told: expected(name)};
};

const BOTH = ["every_term", "long_row"];

test("the named terms, the largest first, and all others sum to the recorded score", () => {
  for (const {pair, told} of BOTH.map((name) => openedPair(name, 3))) {
    const sizes = pair.named.map((dimension) => Math.abs(pair.terms[dimension]));
    assert.equal(pair.named.length, 3);
    assert.deepEqual(
      sizes,
      [...sizes].sort((one, other) => other - one),
    );
    const lines = sumTerms(pair);
    near(
      lines.reduce((sum, {value}) => sum + value, 0),
      told.chain.scores,
    );
    // All others by sign: none cancel within a line.
    const [others, rest] = [lines.slice(3), [...pair.terms].filter((_, at) => !pair.named.includes(at))];
    assert.equal(
      others.reduce((sum, {many}) => sum + many, 0),
      rest.length,
    );
    near(
      others.reduce((sum, {value}) => sum + Math.abs(value), 0),
      rest.reduce((sum, one) => sum + Math.abs(one), 0),
    );
  }
});

test("the drawer stands beside the column that was pressed, and within the page", () => {
  const places = placesFor(1312, 860, /** @type {any} */ ({d_k: 64}), {lanes: 9, terms: 7, steps: [80], rest: 360});
  for (const column of [places.entering, places.factors, places.sum, places.row, places.values, places.joined]) {
    const {left, width} = placeBeside(column.x + 20, places);
    assert.ok(left + width <= column.x || left >= column.x + column.width, String(column.x));
    assert.ok(left >= 0 && left + width <= 1312 && width >= 500);
  }
});

test("each step of the score is as recorded, and one that changes nothing says so", () => {
  for (const name of BOTH) {
    const {opened, pair, told} = openedPair(name);
    const chain = chainOf(opened, pair);
    const had = opened.header.steps.map(([step]) => step).filter((step) => told.chain[step] != null);
    assert.deepEqual(
      chain.map((step) => step.name),
      had,
    );
    for (const step of chain) near(step.value, told.chain[step.name]);
    assert.equal(chain.at(-1).skipped, name === "long_row");
    assert.equal(chain.at(-1).how, name === "long_row" ? "nothing blocked: skipped" : "1 later key blocked");
  }
});

test("the lanes hold the whole row, and their values by their weights sum to the output", () => {
  for (const name of BOTH) {
    const {pair, told} = openedPair(name);
    const total = pair.lanes.reduce((sum, {weight}) => sum + weight, 0);
    near(total, 1, 1e-5);
    const factor = (lane) => (lane.kind === "others" ? 1 : lane.weight);
    const made = (at) => pair.lanes.reduce((all, lane) => all + (lane.value ? lane.value[at] * factor(lane) : 0), 0);
    told.output.forEach((number, at) => near(number, made(at)));
    assert.deepEqual(
      pair.lanes.map(({kind}) => kind).filter((kind) => kind !== "key"),
      [name === "long_row" ? "others" : "sink"],
    );
  }
});

test("the softmax's sum follows from the row, and each weight from its entry", () => {
  for (const {pair, told} of BOTH.map((name) => openedPair(name))) {
    const {largest, sum} = exponentials(pair.lanes);
    for (const one of pair.lanes.filter(({kind}) => kind === "key"))
      near(Math.exp(one.entry - largest) / sum, told.weights[one.key], 1e-5);
  }
});

test("a pair is there with its rows: all of a short text, one of a long one", () => {
  const [short, long] = ["every_term", "long_row"].map((name) => openedPair(name).opened);
  assert.ok(hasPair(short, 0, 4) && hasPair(long, 3, 1));
  assert.ok(!hasPair(long, 4, 1));
});

test("a blocked key says why, and weighs nothing", () => {
  const {opened} = openedPair("every_term");
  const pair = openPair(opened, 1, 4, 6);
  assert.ok(pair.isBlocked && pair.weight === 0 && pair.blocked === 3);
  assert.equal(reasonOf(opened, pair, 4), "later");
  assert.match(plain(entryTold(opened, pair, pair.lanes[4])), /blocked, it comes later than the query: −∞$/);
  assert.match(plain(weightTold(opened, pair, pair.lanes[4])), /its weight is 0$/);
});

test("a key that an indexer left out is said to be so, and others to be blocked", () => {
  const {opened} = openedPair("picked");
  const [left, later] = [3, 4].map((key) => openPair(opened, 3, key, 6));
  assert.deepEqual(
    [0, 2, 3, 4].map((key) => reasonOf(opened, left, key) === "left"),
    [false, true, true, false],
  );
  assert.equal(plain(entryTold(opened, left, left.lanes[3])).split(": ")[1], "not picked, 2 below the cut");
  assert.match(plain(weightTold(opened, left, left.lanes[3])), /not picked, so its weight is 0$/);
  assert.match(plain(entryTold(opened, later, later.lanes[4])), /blocked, it comes later than the query: −∞$/);
  const [allowed, blocked] = [left, later].map((pair) => chainOf(opened, pair).at(-1));
  assert.equal(allowed.how, "1 later key blocked, 2 not picked");
  assert.match(stepTold(allowed, opened.header), /^not picked: /);
  assert.match(stepTold(blocked, opened.header), /^blocked: /);
});

const MIXED = ["state_space", "own_token", "delta_rule"];

test("without a softmax the stages of a pair are those that Python opens, and end in its weight", () => {
  for (const name of MIXED) {
    const {opened, pair, told} = openedPair(name);
    const chain = chainOf(opened, pair);
    assert.equal(chain[0].name, "read");
    const scaled = pair.terms.reduce((sum, one) => sum + one, 0) * opened.header.scale;
    near(scaled, told.steps.read, 1e-4);
    for (const [stage, step] of [
      ["read", "read"],
      ["decayed", "decayed"],
      ["erased", "kept"],
    ]) {
      const found = chain.find((one) => one.name === stage);
      if (found) near(found.value, told.steps[step]);
    }
    near(chain.at(-1).value, told.steps.weight);
    near(pair.weight, told.weights[pair.key], 1e-5);
    near(chain.at(-1).value, pair.weight);
  }
  const stages = (name) => chainOf(...Object.values(openedPair(name)).slice(0, 2)).map((one) => one.name);
  assert.deepEqual(stages("delta_rule"), ["read", "decayed", "erased", "write"]);
  // Nothing is added where there is nothing to add.
  assert.ok(stages("own_token").includes("skip") && !stages("state_space").includes("skip"));
});

test("each stage is told by its factor", () => {
  const {opened, pair, told} = openedPair("state_space");
  const [, decayed, kept] = chainOf(opened, pair);
  assert.equal(decayed.how, `× ${told.steps.decay.toFixed(2)} left`);
  assert.equal(kept.how, `× ${told.steps.write.toFixed(2)} Δ`);
  assert.match(stepTold(kept, opened.header), /^\d\.\d\d × 0\.\d\d Δ = 0\.\d\d$/);
  const line = plain(weightTold(opened, pair, pair.lanes[pair.key]));
  assert.match(
    line,
    /^pink: 4\.\d\d → × 0\.\d\d left = 3\.\d\d → × 0\.\d\d Δ = 0\.\d\d: weight 0\.\d\d, \d+\u202f% of the row’s size$/,
  );
});

test("signed weights have their size's part of the row, and make the output", () => {
  for (const name of MIXED) {
    const {opened, pair, told} = openedPair(name);
    const size = told.weights.reduce((sum, one) => sum + Math.abs(one), 0);
    for (const one of pair.lanes) near(one.share, Math.abs(told.weights[one.key]) / size, 1e-5);
    const values = pair.lanes.map(({weight, value}) => [...value].map((number) => number * weight));
    told.output.forEach((number, at) =>
      near(
        values.reduce((sum, value) => sum + value[at], 0),
        number,
        1e-3,
      ),
    );
    assert.equal(pair.isSigned, true);
    const later = pair.lanes.filter(({key}) => key > pair.query);
    assert.ok(later.length > 0 && later.every(({entry, weight}) => entry === -Infinity && weight === 0));
    assert.equal(reasonOf(opened, pair, later[0].key), "later");
  }
  assert.ok(openedPair("delta_rule").pair.weight < 0);
});

test("of many channels the chosen one's neighbours are shown", () => {
  assert.deepEqual(headsShown({head: 3, heads: 4}), [0, 1, 2, 3]);
  const shown = headsShown({head: 1000, heads: 1024});
  assert.ok(shown.length === 128 && shown.includes(1000) && shown.at(-1) === 1023);
});

test("how a step changes a score is told as arithmetic", () => {
  const {opened, pair} = openedPair("every_term");
  const told = chainOf(opened, pair)
    .slice(1)
    .map((step) => stepTold(step, opened.header));
  const number = "(\u2212?[\\d.]+)";
  const shapes = [`^${number} × 0.3 = ${number}$`, `^2.5 · tanh\\(${number} ÷ 2.5\\) = ${number}$`];
  shapes.push(
    `^${number} [+−] ${number} for these positions = ${number}$`,
    `^1 later key blocked, but not this one: ${number} stays$`,
  );
  told.forEach((line, at) => assert.match(line, new RegExp(shapes[at])));
});

test("a bias of several parts is told part by part", () => {
  const {opened, pair} = openedPair("two_parts");
  const step = chainOf(opened, pair).find(({name}) => name === "biased");
  assert.equal(step.how.replace(/^\S+/, "n"), "n in 2 parts");
  const sum = step.parts.reduce((total, {value}) => total + value, step.before);
  assert.ok(Math.abs(sum - step.value) < 1e-5);
  const number = "\u2212?[\\d.]+";
  const shape = `^${number} [+\u2212] ${number} content to position [+\u2212] ${number} position to content = ${number}$`;
  assert.match(stepTold(step, opened.header), new RegExp(shape));
});

test("what one head adds to the joined vector is told with its part of it, or why it can't be", () => {
  const header = {head: 4, heads: 12, d_v: 32, known: ["output", "query"]};
  assert.equal(
    plain(addsTold(header, [2.09, 4.58, 0.314], true)),
    "output · rows 128 to 159 of W_O: norm 2.09, joined 4.58; head 4’s part of joined: 31 %, all heads and the bias 100 %",
  );
  assert.match(plain(addsTold(header, [2, 4, -0.12], true)), /part of joined: −12 %/);
  assert.match(plain(addsTold({...header, heads: 1, head: 0}, [2, 4, 1], true)), /^output · W_O: /);
  assert.match(plain(addsTold({...header, known: ["query"]}, null, true)), /unknown: no known W_O/);
  assert.match(plain(addsTold({...header, known: []}, null, true)), /as in a trace from a file/);
  assert.match(plain(addsTold(header, null, false)), /was not recorded/);
});

test("what divides the scores is told as it is", () => {
  assert.equal(scaling({scale: 1 / 8, d_k: 64}), "÷ √64 = 8.00");
  assert.equal(scaling({scale: 0.3, d_k: 64}), "× 0.3");
  assert.equal(scaling({scale: 1, d_k: 64}), "not scaled: skipped");
});

test("of a wide vector neighbours share a line, which tells all their products", () => {
  assert.equal(linesOf(160).length, 160);
  assert.deepEqual(linesOf(256)[1], [2, 3]);
  assert.deepEqual(linesOf(320).flat(), [...Array(320).keys()]);
  const pair = {q: [1, 2], k: [3, -4], terms: [3, -8]};
  assert.equal(plain(termTold(pair, [0])), "dimension 0: 1.00 × 3.00 = +3.00");
  assert.equal(plain(termTold(pair, [0, 1])), "dimensions 0 to 1: 1.00 × 3.00 + 2.00 × −4.00 = −5.00");
});

test("lanes: all keys of a short text, else the heaviest and the chosen one, in the text's order", () => {
  assert.equal(lanesAmong(new Float32Array(25), 3).length, 25);
  const weights = Float32Array.from({length: 40}, (_, at) => at);
  assert.deepEqual(lanesAmong(weights, 2), [2, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
});

test("numbers: a real minus, no minus at 0, and a weight that is there is never 0", () => {
  assert.deepEqual(
    [written(-1.005, 1), written(-0.001), written(-Infinity), signed(2)],
    ["−1.0", "0.00", "−∞", "+2.00"],
  );
});

test("words between two that are too far apart to be seen at once are folded, and their neighbours stay", () => {
  const widths = new Array(20).fill(50);
  // Both ends, what stands for the fold, and four more have room.
  assert.deepEqual(foldOf(widths, 100, 340), [103, 116]);
  assert.deepEqual(foldOf(widths, 0, 90), [1, 18], "however little room there is, both ends stay");
  // What is folded already has no width.
  const folded = widths.map((width, at) => (at < 3 || at > 16 ? width : 0));
  assert.deepEqual(foldOf(folded, 0, 1000), [3, 16]);
});

test("a sum of the rest tells of its largest addition, with a minus that is one", () => {
  const most = Float32Array.from([7, 0.5, 1.25, 1.75, 133, -0.5, -2, -2.5]);
  assert.equal(plain(sumTold(most, 0)), "largest change, dimension 7: 0.500 + 1.250 = 1.750");
  assert.equal(plain(sumTold(most, 1)), "largest change, dimension 133: \u22120.500 \u2212 2.000 = \u22122.500");
});
