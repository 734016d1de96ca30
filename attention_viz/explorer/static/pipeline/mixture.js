// The values by their weights, their sum, which is the head's output, and that output among those of all heads.

import {stripOf} from "./entering.js";
import {cut, flow, label, svg, tidy, upright} from "./scene.js";
import {present, rowOf, share, written} from "./numbers.js";
import {tagOf} from "./row.js";

/**
 * @import {Places} from "./geometry.js"
 * @import {Lane, Opened, Pair} from "./numbers.js"
 * @import {Box, Said, Scene} from "./scene.js"
 */

// From this weight on a value is shown itself, too, pale behind what is taken of it.
const SEEN = 0.02;
const PARTS = 16;
// How far the output's bars go, up or down, in pixels.
const OUTPUT = 30;

/**
 * @param {Scene} scene
 * @param {Opened} opened
 * @param {Pair} pair
 * @param {Places} places
 */
export function drawMixture(scene, opened, pair, places) {
  const row = opened.header.queries.indexOf(pair.query);
  const output = present(rowOf(opened, "output", row));
  const {values, lane} = places;
  const taken = pair.lanes.filter(({value}) => value !== null);
  // The solid bars fit their lanes, and their sum its place: all by one measure.
  const furthestTaken = Math.max(1e-9, ...taken.map((one) => factorOf(one) * furthest(present(one.value))));
  const unit = Math.min((lane * 0.46) / furthestTaken, OUTPUT / Math.max(1e-9, furthest(output)));
  const bottom = values.top + lane * pair.lanes.length;
  scene.title("value", "Value", values.x, values.top - 24, {role: "av-v", below: "× weight (solid)"});
  for (const [at, one] of pair.lanes.entries()) drawValue(scene, one, places, values.top + (at + 0.5) * lane, unit);
  drawOutput(scene, pair, output, places, bottom, unit);
  drawJoined(scene, opened, row, places, bottom + 72);
}

/**
 * By how much a lane's value is multiplied: all others' is their weighted sum already.
 * @param {Lane} one
 */
function factorOf({kind, weight}) {
  return kind === "others" ? 1 : weight;
}

/** @param {ArrayLike<number>} numbers */
function furthest(numbers) {
  return Math.max(...Array.from(numbers, Math.abs));
}

/**
 * @param {Scene} scene
 * @param {Lane} one
 * @param {Places} places
 * @param {number} y
 * @param {number} unit
 */
function drawValue(scene, one, {values: {x, width}, row, lane, narrow}, y, unit) {
  const tag = tagOf(one);
  const tags = `value value-${tag}`;
  if (narrow)
    scene.add(
      tags,
      label(x, y - lane * 0.24, `${one.kind === "key" ? "av-k av-mono" : "av-below"} av-small`, cut(one.name, 14)),
    );
  scene.add(tags, svg("path", {d: `M${tidy(x)} ${tidy(y)}h${tidy(width)}`, class: "av-axis"}));
  if (one.value === null) {
    if (!narrow) scene.add(tags, label(x, y - 4, "av-below av-small", "dropped"));
    return;
  }
  const factor = factorOf(one);
  if (!narrow && one.weight >= 0.01) {
    const start = row.x + row.width + 2;
    scene.add(
      `weight-${tag} ${tags}`,
      flow(`M${tidy(start)} ${tidy(y)}H${tidy(x - 3)}`, "av-v av-ribbon", Math.max(1, Math.min(14, one.weight * 12))),
    );
  }
  const each = width / one.value.length;
  const room = lane * 0.48;
  const wide = each < 2 ? each : each * 0.8;
  if (one.weight >= SEEN && one.kind === "key") {
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
      ? [`${one.name}: their values by their weights, which sum to `, [share(one.weight), "av-strong"]]
      : [[share(one.weight), "av-strong"], " \u00d7 ", [`v(${one.name})`, "av-v"], `, ${one.value.length} numbers`];
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

/**
 * @param {Scene} scene
 * @param {Pair} pair
 * @param {Float32Array} output
 * @param {Places} places
 * @param {number} bottom
 * @param {number} unit
 */
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
  if (width > 156)
    scene.add("output", label(x + width, bottom + 34, "av-below", "sum of solid", {"text-anchor": "end"}));
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

/**
 * One number of the output, and the key that gives it most.
 * @param {Pair} pair
 * @param {number} number
 * @param {number} at
 * @returns {Said[]}
 */
function outputTold({lanes}, number, at) {
  const parts = lanes.flatMap((one) => (one.value === null ? [] : [{one, part: factorOf(one) * one.value[at]}]));
  const {one, part} = parts.reduce((best, other) => (Math.abs(other.part) > Math.abs(best.part) ? other : best));
  const made =
    one.kind === "others" ? one.name : `${one.name} ${share(one.weight)} \u00d7 ${written(present(one.value)[at])}`;
  return [
    `output ${at} = \u03a3 weight \u00d7 value = `,
    [written(number, 3), "av-strong"],
    `; most: ${made} = ${written(part, 3)}`,
  ];
}

/**
 * All heads' outputs side by side, this head's among them, and what W_O makes of them.
 * @param {Scene} scene
 * @param {Opened} opened
 * @param {number} row
 * @param {Places} places
 * @param {number} output  where the head's own output stands
 */
function drawJoined(scene, opened, row, {joined, values, narrow}, output) {
  const {header} = opened;
  const {x, top, width, room} = joined;
  const made = rowOf(opened, "joined", row);
  const strip = 16;
  const wide = width - strip - 12;
  const outputs = present(rowOf(opened, "heads", row));
  const largest = Math.max(1e-9, furthest(outputs));
  const each = room / header.heads;
  scene.title("joined", "Heads joined", x + width, narrow ? top - 40 : 16, {
    below: `${header.heads} ${header.heads === 1 ? "head" : "heads"}`,
    end: true,
  });
  for (let head = 0; head < header.heads; head++) {
    const numbers = outputs.subarray(head * header.d_v, (head + 1) * header.d_v);
    drawHead(scene, header, head, numbers, {x, y: top + head * each, width: wide, height: each}, largest);
  }
  const end = x + wide + 12;
  /** @type {Said[]} */
  const told = made
    ? [
        `${header.heads} heads side by side${header.known.includes("output") ? " \u00b7 W_O" : ""}: ${header.d_model} numbers`,
      ]
    : ["What the heads are joined to was not recorded"];
  const box = {x: tidy(end), y: top, width: strip, height: room};
  scene.add("joined", made ? stripOf(made, box, "av-more") : svg("rect", {...box, class: "av-unknown"}));
  scene.hit(box, {group: "joined", tags: ["joined", "heads"], told, from: "all heads", to: "the rest of the layer"});
  if (narrow) return;
  const middle = top + (header.head + 0.5) * each;
  const [start, before] = [values.x + values.width + 4, x - 22];
  const path = `M${tidy(start)} ${tidy(output)}C${tidy(before)} ${tidy(output)} ${tidy(start - 4)} ${tidy(middle)} ${tidy(before - 4)} ${tidy(middle)}`;
  scene.add("output this-head", flow(path, "av-v", 3.5, {x: before + 4, y: middle, towards: "right"}));
}

/**
 * @param {Scene} scene
 * @param {{head: number, d_v: number, heads: number}} header
 * @param {number} head
 * @param {Float32Array} numbers
 * @param {Box} box
 * @param {number} largest
 */
function drawHead(scene, header, head, numbers, {x, y, width, height}, largest) {
  const isOwn = head === header.head;
  const parts = Math.min(PARTS, numbers.length, Math.max(1, Math.floor(height / 2)));
  const thick = (height - 4) / parts;
  const bars = Array.from({length: parts}, (_, part) => {
    const [from, to] = [part, part + 1].map((one) => Math.floor((one * numbers.length) / parts));
    const number = numbers
      .subarray(from, Math.max(from + 1, to))
      .reduce((best, one) => (Math.abs(one) > Math.abs(best) ? one : best), 0);
    const length = ((number / largest) * width) / 2;
    const left = x + width / 2 + Math.min(0, length);
    return svg("rect", {
      x: tidy(left),
      y: tidy(y + 2 + part * thick),
      width: tidy(Math.abs(length) + 0.4),
      height: tidy(thick * 0.8),
      class: `av-solid ${isOwn ? "av-v" : "av-less"}`,
    });
  });
  const frame = {
    x: tidy(x),
    y: tidy(y + 0.5),
    width: tidy(width),
    height: tidy(height - 1.5),
    rx: Math.min(4, height / 4),
  };
  scene.add(
    `heads head-${head} ${isOwn ? "this-head" : ""}`.trim(),
    svg("g", {}, svg("rect", {...frame, class: isOwn ? "av-own-head" : "av-head"}), ...bars),
  );
  if (height >= 12 || isOwn)
    scene.add(
      `heads head-${head}`,
      label(x - 5, y + height / 2 + 4, `av-tick ${isOwn ? "av-v av-strong" : ""}`, String(head), {
        "text-anchor": "end",
      }),
    );
  const [first, last] = [head * header.d_v, (head + 1) * header.d_v - 1];
  /** @type {Said[]} */
  const told = [`head ${head}: numbers ${first} to ${last} of ${header.heads * header.d_v}`];
  scene.hit(
    {x, y, width, height},
    {
      group: "joined",
      tags: [`head-${head}`, ...(isOwn ? ["output"] : [])],
      told,
      from: isOwn ? "output" : `head ${head}`,
      to: "W_O",
    },
  );
}
