// The values by their weights, their sum, which is the head's output, and that output among those of all heads.

import {drawJoined} from "./joined.js";
import {cut, flow, label, tidy, upright} from "./scene.js";
import {weightText} from "../data/scale.js";
import {svg} from "../parts/element.js";
import {furthest, present, rowOf, written} from "./numbers.js";
import {tagOf} from "./row.js";

/** @import {Places} from "./geometry.js"
 * @import {Lane, Opened, Pair} from "./numbers.js"
 * @import {Said, Scene} from "./scene.js" */

// From this weight on a value is shown itself, too, pale behind what is taken of it.
const SEEN = 0.02;
// How far the output's bars go, up or down, in pixels.
const OUTPUT = 30;

/** @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Places} places */
export function drawMixture(scene, opened, pair, places) {
  const row = opened.header.queries.indexOf(pair.query);
  const output = present(rowOf(opened, "output", row));
  const {values, lane} = places;
  const taken = pair.lanes.filter(({value}) => value !== null);
  // The solid bars fit their lanes, and their sum its place: all by one measure.
  const furthestTaken = Math.max(1e-9, ...taken.map((one) => Math.abs(factorOf(one)) * furthest(present(one.value))));
  const unit = Math.min((lane * 0.46) / furthestTaken, OUTPUT / Math.max(1e-9, furthest(output)));
  const bottom = values.top + lane * pair.lanes.length;
  scene.title("value", "Value", values.x, values.top - 24, {role: "av-v", below: "× weight (solid)"});
  for (const [at, one] of pair.lanes.entries()) drawValue(scene, one, places, values.top + (at + 0.5) * lane, unit);
  // Over the bars, which are as high as their lane.
  if (places.narrow)
    for (const [at, one] of pair.lanes.entries()) nameLane(scene, one, places, values.top + (at + 0.5) * lane);
  drawOutput(scene, pair, output, places, bottom, unit);
  drawJoined(scene, opened, row, places, bottom + 72);
}

/** @param {Scene} scene @param {Lane} one @param {Places} places @param {number} y */
function nameLane(scene, one, {values: {x}, lane}, y) {
  const role = one.kind === "key" ? "av-k av-mono" : "av-below";
  scene.add(`value value-${tagOf(one)}`, label(x, y - lane * 0.24, `${role} av-small av-over-bars`, cut(one.name, 14)));
}

/** By how much a lane's value is multiplied: all others' is their weighted sum already. @param {Lane} one */
function factorOf({kind, weight}) {
  return kind === "others" ? 1 : weight;
}

/** @param {Scene} scene @param {Lane} one @param {Places} places @param {number} y @param {number} unit */
function drawValue(scene, one, {values: {x, width}, row, lane, narrow}, y, unit) {
  const tag = tagOf(one);
  const tags = `value value-${tag}`;
  scene.add(tags, svg("path", {d: `M${tidy(x)} ${tidy(y)}h${tidy(width)}`, class: "av-axis"}));
  if (one.value === null) {
    if (!narrow) scene.add(tags, label(x, y - 4, "av-below av-small", "dropped"));
    return;
  }
  const factor = factorOf(one);
  if (!narrow && one.share >= 0.01) {
    const start = row.x + row.width + 2;
    const role = one.weight < 0 ? "av-less" : "av-v";
    scene.add(
      `weight-${tag} ${tags}`,
      flow(`M${tidy(start)} ${tidy(y)}H${tidy(x - 3)}`, `${role} av-ribbon`, Math.max(1, Math.min(14, one.share * 12))),
    );
  }
  const each = width / one.value.length;
  const room = lane * 0.48;
  const wide = each < 2 ? each : each * 0.8;
  if (one.share >= SEEN && one.kind === "key") {
    const pale = Array.from(one.value, (number, at) => {
      const length = Math.max(-room, Math.min(room, number * unit));
      return `M${tidy(x + at * each)} ${tidy(y)}v${tidy(-length)}h${tidy(wide)}v${tidy(length)}z`;
    });
    scene.add(tags, svg("path", {d: pale.join(""), class: "av-solid av-v av-ghost"}));
  }
  const solid = Array.from(one.value, (number, at) =>
    upright(x + at * each, y, wide, number * factor * unit, "av-solid av-v"),
  );
  scene.add(tags, svg("g", {}, ...solid.filter((_, at) => Math.abs(present(one.value)[at] * factor * unit) > 0.25)));
  /** @type {Said[]} */
  const told =
    one.kind === "others"
      ? [`${one.name}: values times weights, which sum to `, [weightText(one.weight), "av-strong"]]
      : [
          [weightText(one.weight), "av-strong"],
          " \u00d7 ",
          [`v(${one.name})`, "av-v"],
          `, ${one.value.length} numbers`,
        ];
  const box = {x: tidy(x - 2), y: tidy(y - lane / 2), width: tidy(width + 4), height: tidy(lane)};
  const chooses = one.kind === "key" ? {key: one.key} : {};
  scene.hit(box, {
    group: "values",
    tags: [`weight-${tag}`, `value-${tag}`, "output"],
    told,
    from: "weight, value",
    to: "output",
    ...chooses,
  });
}

/** @param {Scene} scene @param {Pair} pair @param {Float32Array} output @param {Places} places @param {number} bottom
 * @param {number} unit */
function drawOutput(scene, pair, output, {values: {x, width}}, bottom, unit) {
  const zero = bottom + 72;
  scene.add(
    "output",
    flow(`M${tidy(x + width / 2)} ${tidy(bottom + 3)}v8`, "av-v", 3.5, {
      x: x + width / 2,
      y: bottom + 19,
      towards: "down",
    }),
  );
  scene.title("output", "Output", x, bottom + 34, {role: "av-v"});
  // Beside the title and the button of its matrix.
  const summed = width > 172 ? "sum of solid" : "their sum";
  if (width > 148) scene.add("output", label(x + width, bottom + 34, "av-below", summed, "end"));
  scene.add("output", svg("path", {d: `M${tidy(x)} ${tidy(zero)}h${tidy(width)}`, class: "av-axis"}));
  const each = width / output.length;
  for (const [at, number] of output.entries()) {
    scene.add(
      `output output-${at}`,
      upright(x + at * each, zero, each < 2 ? each : each * 0.8, number * unit, "av-solid av-v"),
    );
    const box = {x: tidy(x + at * each), y: tidy(zero - OUTPUT), width: tidy(each), height: 2 * OUTPUT};
    scene.hit(box, {
      group: "output",
      tags: ["weight", `output-${at}`],
      told: outputTold(pair, number, at),
      from: "weighted values",
      to: "joined",
    });
  }
}

/** One number of the output, and the key that gives it most.
 * @param {Pair} pair @param {number} number @param {number} at @returns {Said[]} */
function outputTold({lanes}, number, at) {
  const parts = lanes.flatMap((one) => (one.value === null ? [] : [{one, part: factorOf(one) * one.value[at]}]));
  const {one, part} = parts.reduce((best, other) => (Math.abs(other.part) > Math.abs(best.part) ? other : best));
  const made =
    one.kind === "others"
      ? one.name
      : `${one.name} ${weightText(one.weight)} \u00d7 ${written(present(one.value)[at])}`;
  return [
    `output ${at} = \u03a3 weight \u00d7 value = `,
    [written(number, 3), "av-strong"],
    `; most: ${made} = ${written(part, 3)}`,
  ];
}
