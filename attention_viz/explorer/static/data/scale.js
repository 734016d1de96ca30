// From weights to colours, lengths and digits.

import {DECADES, signedPlace, significant} from "./mixing.js";

/** Red, green and blue, each 0 to 255. @typedef {number[]} Colour */

/** The last two are those of layers without a softmax: their weights with signs, and what arrives by them.
 * @typedef {"linear" | "maximum" | "logarithmic" | "signed" | "arrived"} ScaleName */

/** How a weight becomes a place between 0 (the page's background) and 1 (the deepest colour), given the largest weight.
 * @typedef {{label: string, title: string, place: (weight: number, maximum: number) => number,
 *   ticks: (maximum: number) => [place: number, text: string][]}} Scale */

const FAINTEST = 0.001;

// A weight that is less than this isn't written where numbers stand in cells or at arcs: it is as good as none.
export const LEAST_NUMBER = 0.05;

// The relative luminance on which black and white are read equally well: (L + 0.05)² = 1.05 × 0.05.
const EITHER = Math.sqrt(1.05 * 0.05) - 0.05;

/** @type {Record<ScaleName, Scale>} */
export const SCALES = {
  linear: {
    label: "0 to 1",
    title: "The same colour means the same weight in every head",
    place: (weight) => weight,
    ticks: () => [
      [0, "0"],
      [0.5, "0.5"],
      [1, "1"],
    ],
  },
  maximum: {
    label: "Per head",
    title: "The deepest colour is each head's own largest weight",
    place: (weight, maximum) => (maximum > 0 ? Math.min(1, weight / maximum) : 0),
    ticks: (maximum) => [
      [0, "0"],
      [1, weightText(maximum)],
    ],
  },
  logarithmic: {
    label: "Logarithmic",
    title: "Equal colour steps for equal factors, down to 0.001: shows weak links",
    place: (weight) => Math.max(0, 1 - Math.log10(Math.max(weight, FAINTEST)) / Math.log10(FAINTEST)),
    ticks: () => [
      [0, "0.001"],
      [1 / 3, "0.01"],
      [2 / 3, "0.1"],
      [1, "1"],
    ],
  },
  signed: {
    label: "Signed",
    title: "One colour below 0, one above; equal steps for equal factors, from the matrix\u2019s largest size down",
    place: (weight, maximum) => (1 + signedPlace(weight, maximum)) / 2,
    ticks: (maximum) => [
      [0, significant(-maximum)],
      [0.5, "0"],
      [1, significant(maximum)],
    ],
  },
  arrived: {
    label: "What arrived",
    title: "Equal colour steps for equal factors, from the matrix\u2019s largest down",
    place: signedPlace,
    ticks: (maximum) => [
      [0, significant(maximum / 10 ** DECADES)],
      [1, significant(maximum)],
    ],
  },
};

/** @type {readonly ScaleName[]} */
export const SCALE_NAMES = ["linear", "maximum", "logarithmic"];

/** How long or wide a mark of a weight is, 0 to 1. Lengths are read as proportions, so they never follow the
 * logarithmic scale: beside it and "per head" they are relative to `most`, the heaviest weight of the same picture.
 * @param {ScaleName} scale @param {number} weight @param {number} most */
export function lengthOf(scale, weight, most) {
  return scale === "linear" ? weight : Math.abs(weight / (most || 1));
}

/** "#rrggbb" as a colour. @param {string} colour @returns {Colour} */
export function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** The colour at a place of a ramp, 0 to 1. @param {Colour[]} ramp @param {number} place @returns {Colour} */
export function onRamp(ramp, place) {
  const at = Math.min(Math.max(place, 0), 1) * (ramp.length - 1);
  const [low, high] = [ramp[Math.floor(at)], ramp[Math.ceil(at)]];
  return low.map((channel, i) => channel + (high[i] - channel) * (at % 1));
}

/** @type {{of: unknown[], table: Uint32Array}} */
let lastTable = {of: [], table: new Uint32Array(0)};

/** The colour of every weight that there can be, as pixels; nobody writes into it, as the next head may have the same.
 * @param {ArrayLike<number>} values @param {ScaleName} scale @param {number} maximum @param {Colour[]} ramp */
export function colourTable(values, scale, maximum, ramp) {
  const of = [values, scale, maximum, ramp];
  if (of.some((one, at) => one !== lastTable.of[at])) {
    const {place} = SCALES[scale];
    lastTable = {of, table: Uint32Array.from(values, (weight) => pixel(onRamp(ramp, place(weight, maximum))))};
  }
  return lastTable.table;
}

/** The colour of every weight that there can be where the deepest stands for `most`, however little that is: on the
 * logarithmic scale the palest for a thousandth of it.
 * @param {ArrayLike<number>} values @param {ScaleName} scale @param {number} most @param {Colour[]} ramp */
export function relativeTable(values, scale, most, ramp) {
  const relative = Float64Array.from(values, (weight) => Math.min(1, weight / (most || 1)));
  return colourTable(relative, scale === "logarithmic" ? scale : "linear", 1, ramp);
}

/** A colour as one little-endian pixel of an image. @param {Colour} colour */
export function pixel([red, green, blue]) {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/** A colour as a style sheet has it. @param {Colour} colour */
export function rgb(colour) {
  return `rgb(${colour.map(Math.round).join(" ")})`;
}

/** A weight in a table of all numbers: three digits, and what is there but too small for them is told as such.
 * @param {number} weight */
export function threeDigits(weight) {
  return weight > 0 && weight < 0.0005 ? "<0.001" : weight.toFixed(3);
}

/** A weight as pages write it, with two digits: "0.58"; a smaller one is "<0.01", and exactly 0 is "0". `weight_text` in
 * `trace/spelling.py` writes the same.
 * @param {number} weight */
export function weightText(weight) {
  const size = Math.abs(weight);
  if (size === 0) return "0";
  if (size < 0.005) return weight > 0 ? "<0.01" : ">\u22120.01";
  return `${weight < 0 ? "\u2212" : ""}${size.toFixed(2)}`;
}

/** Two digits of a weight with a sign, as short as they can be. @param {number} weight */
export function twoDigits(weight) {
  const size = Math.abs(weight);
  const text = size >= 100 || size < 0.001 ? size.toExponential(0).replace("e+", "e") : size.toPrecision(2);
  return `${weight < 0 ? "\u2212" : ""}${text.replace(/^0\./, ".")}`;
}

/** Black or white, whichever can be read on a colour: at 4.5 to 1 at least on any (WCAG 2.2). The rule for every number
 * in a coloured cell; `views/style/theme.py` goes by the same.
 * @param {Colour} colour */
export function inkOn([red, green, blue]) {
  const luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  return luminance < EITHER ? "#FFFFFF" : "#000000";
}

/** @param {number} channel */
function linear(channel) {
  const share = channel / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
