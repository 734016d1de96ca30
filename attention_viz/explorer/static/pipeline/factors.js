// Two vectors and their products, a row a dimension, so that a product stands beside its factors.

import {bar, cut, label, tidy} from "./scene.js";
import {svg} from "../parts/element.js";
import {drawEntering} from "./entering.js";
import {present, signed, written} from "./numbers.js";

/** @import {Rest} from "./rest.js" */

/** @import {Places} from "./geometry.js"
 * @import {Opened, Pair} from "./numbers.js"
 * @import {Said, Scene} from "./scene.js" */

/** A column of bars: from where they begin, by how much a number is long, and where it is 0.
 * @typedef {{x: number, width: number, zero: number, unit: number}} Axle */

// Wider vectors are shown in parts: neighbours together.
const WIDEST = 160;
// Numbers beside bars need so much from one to the next.
const NUMBER_PITCH = 11;

/** Neighbouring dimensions that share a line; of most models each has one of its own.
 * @param {number} count @returns {number[][]} */
export function linesOf(count) {
  const each = count > WIDEST ? Math.ceil(count / 128) : 1;
  const lines = Array.from({length: Math.ceil(count / each)}, () => /** @type {number[]} */ ([]));
  for (let dimension = 0; dimension < count; dimension++) lines[Math.floor(dimension / each)].push(dimension);
  return lines;
}

/** Draw what enters, the query, the key and their products; gives where the products' bars end, by dimension.
 * @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Places} places @param {Rest | null} rest
 * @returns {(dimension: number) => {x: number, y: number}} */
export function drawFactors(scene, opened, pair, places, rest) {
  drawEntering(scene, opened, pair, places, rest);
  const {x, width} = places.factors;
  if (!pair.terms.length) {
    const words = "No vectors are compared:|the weight follows from|the numbers on the right.".split("|");
    for (const [at, line] of words.entries())
      scene.add("", label(x, places.top + 16 + at * 18, "av-small av-muted", line));
    return () => ({x, y: places.top});
  }
  const lines = linesOf(opened.header.d_k);
  const [query, key, product] = [pair.q, pair.k, pair.terms].map((numbers) =>
    lines.map((line) => together(numbers, line)),
  );
  for (const [at, line] of lines.entries())
    if (line.length > 1) product[at] = line.reduce((sum, one) => sum + pair.terms[one], 0);
  const axles = [
    axleOf(x, width * 0.29, query, 37),
    axleOf(x + width * 0.33, width * 0.29, key, 37),
    axleOf(x + width * 0.66, width * 0.34, product, 0),
  ];
  drawTitles(scene, opened, pair, places.top - 24, axles);
  drawBars(scene, pair, places, lines, [query, key, product], axles);
  drawNumbers(scene, pair, places, lines, axles);
  if (!places.narrow) drawTicks(scene, places, lines);
  const step = places.room / lines.length;
  return (dimension) => {
    const at = lines.findIndex((line) => line.includes(dimension));
    return {x: axles[2].zero + Math.max(0, product[at]) * axles[2].unit + 2, y: places.top + (at + 0.5) * step};
  };
}

/** One number for a line: its own, or of several the one that is furthest from 0.
 * @param {ArrayLike<number>} numbers @param {number[]} line */
function together(numbers, line) {
  return line.reduce((best, at) => (Math.abs(numbers[at]) > Math.abs(best) ? numbers[at] : best), 0);
}

/** @param {number} x @param {number} width @param {number[]} numbers
 * @param {number} margin  for numbers beside the bars
 * @returns {Axle} */
function axleOf(x, width, numbers, margin) {
  const [low, high] = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
  const zero = Math.max(x + margin, Math.min(x + width - margin, x + (width * -low) / (high - low || 1)));
  const unit = Math.min(low < 0 ? (zero - x) / -low : Infinity, high > 0 ? (x + width - zero) / high : Infinity);
  return {x, width, zero, unit: Number.isFinite(unit) ? unit : 0};
}

/** @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {number} y @param {Axle[]} axles */
function drawTitles(scene, opened, pair, y, [query, key, product]) {
  const {header, queries, keys} = opened;
  const signs = Math.max(4, Math.floor((key.x - query.x) / 8) - 1);
  // Of a patch its place is enough beside "Query" and "Key", as in the rows above.
  const short = (/** @type {string} */ word) => cut(word.replace(/^patch (?=\d+, \d+$)/, ""), signs);
  scene.title("query", "Query", query.x, y, {role: "av-q", below: short(queries.names[pair.query]), mono: true});
  scene.title("key", "Key", key.x, y, {role: "av-k", below: short(keys.names[pair.key]), mono: true});
  const [q, k] = header.mixer?.letters ?? ["q", "k"];
  scene.title("", `${q} × ${k}`, product.x + 6, y, {below: `${header.d_k} terms`});
}

/** @param {Scene} scene @param {Pair} pair @param {Places} places @param {number[][]} lines
 * @param {number[][]} columns @param {Axle[]} axles */
function drawBars(scene, pair, places, lines, columns, axles) {
  const {top, room, factors} = places;
  const step = room / lines.length;
  const thick = Math.max(1, Math.min(28, step * 0.72));
  for (const {zero} of axles)
    scene.add("", svg("path", {d: `M${tidy(zero)} ${top - 2}V${top + room + 2}`, class: "av-axis"}));
  for (const [at, line] of lines.entries()) {
    const y = top + at * step;
    const isNamed = line.some((one) => pair.named.includes(one));
    const tags = `${line.map((one) => `term-${one}`).join(" ")} ${isNamed ? "terms" : "rest"}`;
    for (const [number, side] of /** @type {const} */ (["query", "key", "product"]).entries()) {
      const value = columns[number][at];
      const role = [`av-q`, `av-k`, value < 0 ? "av-less" : "av-more"][number];
      const kind = `av-solid ${role} ${isNamed ? "" : "av-pale"}`;
      scene.add(
        `${side} ${tags}`,
        bar(axles[number].zero, y + (step - thick) / 2, value * axles[number].unit, thick, kind),
      );
    }
    const box = {x: tidy(factors.x - 6), y: tidy(y), width: tidy(factors.width + 8), height: tidy(step)};
    scene.hit(box, {
      group: "terms",
      tags: line.map((one) => `term-${one}`),
      told: termTold(pair, line),
      from: "query, key",
      to: "scores",
    });
  }
}

/** One product, or those of neighbouring dimensions together.
 * @param {Pair} pair @param {number[]} line @returns {Said[]} */
export function termTold({q, k, terms}, line) {
  const one = line[0];
  if (line.length === 1)
    return [
      `dimension ${one}: `,
      [written(q[one]), "av-q"],
      " \u00d7 ",
      [written(k[one]), "av-k"],
      " = ",
      [signed(terms[one]), "av-strong"],
    ];
  /** @type {Said[]} */
  const parts = line.flatMap((at, number) => [
    number ? " + " : "",
    [written(q[at]), "av-q"],
    " \u00d7 ",
    [written(k[at]), "av-k"],
  ]);
  const sum = line.reduce((all, at) => all + terms[at], 0);
  return [`dimensions ${one} to ${line[line.length - 1]}: `, ...parts, " = ", [signed(sum), "av-strong"]];
}

/** The factors of the named terms, largest first, where they stand apart enough.
 * @param {Scene} scene @param {Pair} pair @param {Places} places @param {number[][]} lines @param {Axle[]} axles */
function drawNumbers(scene, pair, {top, room}, lines, axles) {
  const step = room / lines.length;
  if (lines.length > 64 || lines.length < pair.q.length) return;
  /** @type {number[]} */
  const taken = [];
  for (const dimension of pair.named) {
    const y = top + (dimension + 0.5) * step;
    if (taken.some((other) => Math.abs(other - y) < NUMBER_PITCH)) continue;
    taken.push(y);
    for (const [number, vector] of [pair.q, pair.k].entries()) {
      const value = vector[dimension];
      const x = axles[number].zero + (value < 0 ? 4 : -4);
      const words = written(value, Math.abs(value) >= 9.95 ? 1 : 2);
      const node = label(x, y + 4, `av-factor ${number ? "av-k" : "av-q"}`, words, value < 0 ? "start" : "end");
      scene.add(`${number ? "key" : "query"} term-${dimension} terms`, node);
    }
  }
}

/** Which dimension is which: four numbers beside the first column.
 * @param {Scene} scene @param {Places} places @param {number[][]} lines */
function drawTicks(scene, {top, room, factors}, lines) {
  const step = room / lines.length;
  const apart = Math.max(1, Math.round(lines.length / 4));
  for (let at = 0; at < lines.length; at += apart)
    scene.add("", label(factors.x - 8, top + (at + 0.5) * step + 4, "av-tick", String(present(lines[at])[0]), "end"));
}
