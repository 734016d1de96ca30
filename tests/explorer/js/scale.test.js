import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {
  SCALES,
  channels,
  colourTable,
  inkOn,
  lengthOf,
  onRamp,
  pixel,
  relativeTable,
  threeDigits,
  weightText,
} from "../../../attention_viz/explorer/static/data/scale.js";

const close = (got, wanted) => assert.ok(Math.abs(got - wanted) < 1e-12, `${got} is not ${wanted}`);

test("on the linear scale the same colour means the same weight in every head", () => {
  assert.equal(SCALES.linear.place(0.25, 0.5), 0.25);
});

test("to the maximum, a head's largest weight is the deepest colour, and a head of zeros has none", () => {
  assert.equal(SCALES.maximum.place(0.25, 0.5), 0.5);
  assert.equal(SCALES.maximum.place(0.5, 0.5), 1);
  assert.equal(SCALES.maximum.place(0, 0), 0);
});

test("the logarithmic scale goes in equal steps down to a thousandth, and no further", () => {
  [
    [1, 1],
    [0.1, 2 / 3],
    [0.01, 1 / 3],
    [0.001, 0],
    [0, 0],
  ].forEach(([weight, place]) => close(SCALES.logarithmic.place(weight), place));
});

test("the ticks of each scale stand where their weights lie", () => {
  for (const {ticks, place} of Object.values(SCALES))
    for (const [at, text] of ticks(0.5))
      close(place(Number(text.replace("\u2212", "-").replace(" \u00d7 10\u207b\u2075", "e-5")), 0.5), at);
});

test("lengths are proportions on every scale", () => {
  assert.equal(lengthOf("linear", 0.2, 0.4), 0.2);
  assert.equal(lengthOf("maximum", 0.2, 0.4), 0.5);
  assert.equal(lengthOf("logarithmic", 0.2, 0.4), 0.5);
  assert.equal(lengthOf("logarithmic", 0, 0), 0);
});

test("a place between two colours of a ramp is mixed of both; beyond its ends it stays at them", () => {
  const ramp = ["#ffffff", "#808080", "#0000ff"].map(channels);
  assert.deepEqual(onRamp(ramp, 0.25), [191.5, 191.5, 191.5]);
  assert.deepEqual(onRamp(ramp, -1), [255, 255, 255]);
  assert.deepEqual(onRamp(ramp, 2), [0, 0, 255]);
});

test("a pixel is opaque, with red in its lowest byte", () => {
  assert.equal(pixel([1, 2, 3]), 0xff030201);
});

test("every weight that there can be has its colour", () => {
  const table = colourTable([0, 0.5, 1], "linear", 1, ["#000000", "#ffffff"].map(channels));
  assert.deepEqual([...table], [0xff000000, 0xff7f7f7f, 0xffffffff]);
});

test("what is too small for three digits is told as such, and nothing is nothing", () => {
  assert.equal(threeDigits(0), "0.000");
  assert.equal(threeDigits(0.0004), "<0.001");
  assert.equal(threeDigits(0.0005), "0.001");
  assert.equal(threeDigits(1), "1.000");
});

test("a map of small means is as deep as one of large ones, in proportion or down to a thousandth", () => {
  const ramp = [
    [0, 0, 0],
    [200, 200, 200],
  ];
  const [small, large] = [
    [0, 1e-8, 1e-5, 1e-4],
    [0, 1e-4, 0.1, 1],
  ];
  for (const scale of ["linear", "maximum", "logarithmic"]) {
    const table = relativeTable(small, scale, 1e-4, ramp);
    assert.deepEqual(table, relativeTable(large, scale, 1, ramp), scale);
    assert.equal(table[3], pixel([200, 200, 200]));
    assert.equal(table[0], table[1]);
    assert.equal(table[2], pixel(onRamp(ramp, scale === "logarithmic" ? 2 / 3 : 0.1)));
  }
  assert.equal(relativeTable(small, "linear", 0, ramp)[0], pixel([0, 0, 0]));
});

/** WCAG 2.2, "contrast ratio", written out once more. */
function contrast(one, other) {
  const [low, high] = [one, other]
    .map((colour) =>
      colour
        .map((channel) => (channel <= 10.31475 ? channel / 3294.6 : ((channel / 255 + 0.055) / 1.055) ** 2.4))
        .reduce((sum, light, at) => sum + light * [0.2126, 0.7152, 0.0722][at], 0),
    )
    .sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test("a number can be read on every cell of every ramp, light and dark", () => {
  const theme = readFileSync(new URL("../../../attention_viz/views/style/theme.py", import.meta.url), "utf-8");
  const ramps = [...theme.matchAll(/_stops\("([0-9A-F ]+)"\)/g)].map((found) =>
    found[1].split(" ").map((colour) => channels(`#${colour}`)),
  );
  assert.equal(ramps.length, 6);
  for (const ramp of ramps)
    for (let step = 0; step <= 1000; step++) {
      const colour = onRamp(ramp, step / 1000);
      assert.ok(contrast(colour, channels(inkOn(colour))) >= 4.5, `${step} of ${ramp[0]}`);
    }
});

test("the ink is the one of black and white that stands out more", () => {
  for (let grey = 0; grey < 256; grey++) {
    const colour = [grey, grey, grey];
    const [black, white] = ["#000000", "#FFFFFF"].map((ink) => contrast(colour, channels(ink)));
    assert.equal(inkOn(colour), black > white ? "#000000" : "#FFFFFF", String(grey));
  }
});

test("a weight is written with two digits, as Python writes it", () => {
  const wanted = {
    0: "0",
    0.001: "<0.01",
    0.00499: "<0.01",
    0.005: "0.01",
    0.125: "0.13",
    0.58: "0.58",
    0.996: "1.00",
  };
  for (const [weight, text] of Object.entries(wanted)) assert.equal(weightText(Number(weight)), text);
  assert.deepEqual([-1.07, -0.001].map(weightText), ["\u22121.07", ">\u22120.01"]);
});
