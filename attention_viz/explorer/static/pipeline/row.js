// The chosen query's row: a lane for each key, from what enters the softmax to what comes out of it.

import {bar, cut, flow, label, tidy, widthOf} from "./scene.js";
import {svg} from "../parts/element.js";
import {isUnpicked, stageText, written} from "./numbers.js";
import {weightText} from "../data/scale.js";
import {entryTold, exponentials, rowSum, weightTold} from "./told.js";

/** @import {Places} from "./geometry.js"
 * @import {Lane, Opened, Pair} from "./numbers.js"
 * @import {Said, Scene} from "./scene.js" */

// What the title of the weights and its button take.
const TITLE = 86;

/** @typedef {{zero: number, unit: number}} BarScale */
/** @typedef {{words: number, scores: number, soft: number, weights: number, wide: number, full: number, room: number}} RowSpans */

const GAP = 34;
// How wide a sign is, of a word and of what is small.
const SIGN = 7.9;
const SMALL_SIGN = 6.6;
const ENTRY_FONT = "650 11.5px system-ui, sans-serif";

/** @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Places} places
 * @param {{x: number, y: number, turned: boolean}} score  where the score's way begins */
export function drawRow(scene, opened, pair, places, score) {
  const {row, lane} = places;
  const {lanes} = pair;
  const spans = spansOf(places, pair);
  const height = lane * lanes.length;
  scene.title("", "The row", spans.scores, row.top - 24, {below: rowWords(opened)});
  const total = pair.isSigned ? rowSum(pair) : opened.header.sink === null ? "sum 1" : "sum 1 with the sink";
  scene.title("weights", "Weights", spans.weights, row.top - 24, {
    below: pair.weights.some((one) => one !== 0) ? total : "nothing allowed: all 0",
  });
  if (pair.isSigned) drawMemory(scene, opened, row.top, height, spans);
  else drawSoftmax(scene, pair, row.top, height, spans);
  if (!places.narrow) drawArrival(scene, pair, places, score);
  const entries = lanes.flatMap(({kind, entry}) => (kind === "others" || !Number.isFinite(entry) ? [] : [entry]));
  const scale = scaleOf(pair, entries, spans.scores, spans.full);
  const weights = pair.isSigned ? lanes.map(({weight}) => weight) : [0];
  const shares = scaleOf(pair, weights, spans.weights, spans.room);
  for (const {zero} of pair.isSigned ? [scale, shares] : [scale])
    scene.add("", svg("path", {d: `M${tidy(zero)} ${row.top}v${tidy(height)}`, class: "av-axis"}));
  for (const [at, one] of lanes.entries()) {
    const place = {y: row.top + (at + 0.5) * lane, lane, x: row.x, spans, scale, shares};
    drawLane(scene, opened, pair, one, place);
  }
}

/** @param {Opened} opened */
function rowWords({header}) {
  if (header.mixer) return header.mixer.stages[0][1].toLowerCase();
  const names = header.steps.map(([name]) => name);
  const changed = names.includes("biased") ? "biased" : names.includes("softcapped") ? "soft-capped" : "scaled";
  return header.scale === 1 && changed === "scaled" ? "scores" : changed;
}

/** @param {Places} places @param {Pair} pair @returns {RowSpans} */
function spansOf({row: {x, width}}, {lanes, isSigned}) {
  const longest = Math.max(...lanes.map(({name}) => Math.min(12, [...name].length)));
  const wide = Math.max(40, longest * SIGN + 20);
  const scores = x + wide + 6;
  const half = width - wide - GAP - 10;
  // Weights with a sign have a column of numbers, too.
  const full = isSigned ? half * 0.42 : Math.max(half * 0.4, Math.min(half * 0.52, half - TITLE));
  return {words: x, scores, soft: scores + full + GAP / 2, weights: scores + full + GAP, wide, full, room: half - full};
}

/** Where 0 is, and how long 1 is, of bars with a column of numbers at their right.
 * @param {Pair} pair @param {number[]} ends @param {number} x @param {number} width @returns {BarScale} */
function scaleOf(pair, ends, x, width) {
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const numbers = Math.max(0, ...ends.map((end) => widthOf(stageText(pair, end), ENTRY_FONT)));
  const unit = Math.max(12, width - numbers - 6) / (high - low || 1);
  return {zero: x - low * unit, unit};
}

/** What the layer's memory does between what is read and the weights.
 * @param {Scene} scene @param {Opened} opened @param {number} top @param {number} height @param {RowSpans} spans */
function drawMemory(scene, opened, top, height, {soft}) {
  const stages = opened.header.mixer?.stages.slice(1) ?? [];
  const names = stages.map(([, name]) => name.toLowerCase());
  const box = {x: tidy(soft - 9), y: top, width: 18, height: tidy(height)};
  const turned = `translate(${tidy(soft + 4.5)} ${tidy(top + height / 2)}) rotate(-90)`;
  const fits = [names.join(", "), "memory", ""].find((one) => widthOf(one, ENTRY_FONT) < height - 12);
  const words = svg("text", {y: 0, class: "av-below", transform: turned, "text-anchor": "middle"}, fits ?? "");
  scene.add("softmax", svg("rect", {...box, rx: 9, class: "av-pill"}), words);
  const told = names.length ? `from ${rowWords(opened)} to weight: ${names.join(", ")}` : "the weights themselves";
  scene.hit(box, {
    group: "softmax",
    tags: ["softmax", "entry", "weight"],
    told: [told],
    from: "each key alone",
    to: "weights",
  });
}

/** @param {Scene} scene @param {Pair} pair @param {number} top @param {number} height @param {RowSpans} spans */
function drawSoftmax(scene, {lanes}, top, height, {soft}) {
  const box = {x: tidy(soft - 9), y: top, width: 18, height: tidy(height)};
  const turned = `translate(${tidy(soft + 4.5)} ${tidy(top + height / 2)}) rotate(-90)`;
  const words = svg("text", {y: 0, class: "av-below", transform: turned, "text-anchor": "middle"}, "softmax");
  scene.add("softmax", svg("rect", {...box, rx: 9, class: "av-pill"}), words);
  const {sum, largest} = exponentials(lanes);
  /** @type {Said[]} */
  const told = [
    `weight = e^(entry \u2212 ${written(largest)}) \u00f7 \u03a3, the row\u2019s sum \u03a3 = `,
    [written(sum, 3), "av-strong"],
  ];
  scene.hit(box, {group: "softmax", tags: ["softmax", "entry", "weight"], told, from: "the whole row", to: "weights"});
}

/** The way of the chosen score to its lane.
 * @param {Scene} scene @param {Pair} pair @param {Places} places
 * @param {{x: number, y: number, turned: boolean}} score */
function drawArrival(scene, pair, {row, lane}, score) {
  const place = pair.lanes.findIndex(({key}) => key === pair.key);
  const target = row.top + (place + 0.5) * lane;
  const [start, end] = [score.turned ? score.x - 26 : score.x + 6, row.x - 5];
  const low = score.turned ? score.y + 46 : score.y - 3;
  const middle = (score.x + end) / 2 + 2;
  const bend = Math.min(12, Math.abs(target - low) / 2);
  const way = target < low ? -1 : 1;
  const down = score.turned
    ? `M${tidy(start)} ${tidy(score.y + 13)}V${tidy(low - 12)}Q${tidy(start)} ${tidy(low)} ${tidy(start + 12)} ${tidy(low)}`
    : `M${tidy(start)} ${tidy(low)}`;
  const path = `${down}H${tidy(middle - bend)}Q${tidy(middle)} ${tidy(low)} ${tidy(middle)} ${tidy(low + way * bend)}V${tidy(target - way * bend)}Q${tidy(middle)} ${tidy(target)} ${tidy(middle + bend)} ${tidy(target)}H${tidy(end - 6)}`;
  scene.add(
    `chain-allowed chain-scaled chain-last entry-${pair.key}`,
    flow(path, "av-more", 3.5, {x: end, y: target, towards: "right"}),
  );
}

/** @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Lane} one
 * @param {{y: number, lane: number, x: number, spans: RowSpans, scale: BarScale, shares: BarScale}} place */
function drawLane(scene, opened, pair, one, {y, lane, x, spans, scale, shares}) {
  const isChosen = one.kind === "key" && one.key === pair.key;
  const tag = tagOf(one);
  const box = {x: x - 2, y: tidy(y - lane / 2 + 0.5), height: tidy(lane - 1)};
  /** @type {{key?: number}} */
  const chooses = one.kind === "key" ? {key: one.key} : {};
  const entry = {
    group: "row",
    tags: [`entry-${tag}`, `weight-${tag}`, ...(isChosen ? ["chain-allowed", "chain-scaled", "chain-last"] : [])],
  };
  scene.hit(
    {...box, width: spans.scores + spans.full - x + 4},
    {...entry, ...chooses, told: entryTold(opened, pair, one), ...between(opened)},
    one.kind === "key" ? "av-lane" : "",
  );
  drawWord(scene, one, isChosen, {x, y, lane, wide: spans.wide});
  drawEntry(scene, pair, one, isChosen, {y, lane, spans, scale});
  if (pair.isSigned) drawSigned(scene, one, isChosen, {y, lane, spans, shares});
  else drawWeight(scene, one, isChosen, {y, lane, spans});
  const weight = {group: "weights", tags: ["softmax", "entry", `weight-${tag}`, `value-${tag}`]};
  scene.hit(
    {...box, x: spans.weights - 4, width: spans.room + 12},
    {
      ...weight,
      ...chooses,
      told: weightTold(opened, pair, one),
      from: pair.isSigned ? "this key alone" : "the whole row",
      to: one.kind === "sink" ? "nothing" : "value",
    },
  );
}

/** Where a row's entries come from, and where they go. @param {Opened} opened */
function between({header: {mixer}}) {
  if (!mixer) return {from: "q \u00b7 k", to: "softmax"};
  const [query, key] = mixer.letters;
  return {from: mixer.stages[0][0] === "read" ? `${query} \u00b7 ${key}` : mixer.kind, to: "weight"};
}

/** @param {Lane} one */
export function tagOf({kind, key}) {
  return kind === "key" ? String(key) : kind;
}

/** @param {Scene} scene @param {Lane} one @param {boolean} isChosen
 * @param {{x: number, y: number, lane: number, wide: number}} place */
function drawWord(scene, one, isChosen, {x, y, lane, wide}) {
  const tag = tagOf(one);
  const height = Math.min(26, lane * 0.9);
  const tags = `entry entry-${tag} weight-${tag} value-${tag}`;
  if (isChosen)
    scene.add(
      tags,
      svg("rect", {x, y: tidy(y - height / 2), width: tidy(wide), height: tidy(height), rx: 6, class: "av-chip"}),
    );
  const role = isChosen ? "av-on-chip" : one.kind === "key" ? "av-k av-mono" : "av-below";
  const small = lane < 18 ? "av-small" : "";
  scene.add(tags, label(x + wide - 8, y + 4.5, `${role} ${small} av-lane-word`, cut(one.name, 12), "end"));
}

/** @param {Scene} scene @param {Pair} pair @param {Lane} one @param {boolean} isChosen
 * @param {{y: number, lane: number, spans: RowSpans, scale: BarScale}} place */
function drawEntry(scene, pair, one, isChosen, {y, lane, spans, scale: {zero, unit}}) {
  const tags = `entry entry-${tagOf(one)}`;
  const thick = Math.min(20, lane * 0.62);
  if (one.entry === -Infinity) {
    const box = {x: tidy(spans.scores), y: tidy(y - thick / 2), width: tidy(spans.full), height: tidy(thick)};
    const left = isUnpicked(pair, one.key);
    scene.add(tags, svg("rect", {...box, class: left ? "av-hatched av-unpicked" : "av-hatched"}));
    if (left)
      scene.add(
        tags,
        svg("circle", {cx: tidy(spans.scores + spans.full / 2), cy: tidy(y), r: 2.5, class: "av-pick-dot"}),
      );
    return;
  }
  const low = one.entry * unit;
  if (one.kind === "others") {
    const [range, rounded] = [1, 0].map((digits) => `${written(one.entry, digits)} to ${written(one.most, digits)}`);
    const fits = 4 + range.length * SMALL_SIGN < spans.full;
    scene.add(tags, label(spans.scores + 4, y + 4, "av-small av-muted", fits ? range : rounded));
    return;
  }
  scene.add(tags, bar(zero, y - thick / 2, low, thick, `av-solid ${isChosen ? "av-k" : "av-less av-middling"}`));
  // Numbers stand in a column of their own, so that none crosses a bar or the axis.
  const kind = `av-small ${isChosen ? "av-strong" : ""}`;
  scene.add(tags, label(spans.scores + spans.full, y + 4, kind, stageText(pair, one.entry), "end"));
}

/** A weight with a sign: its bar goes left of 0 where the value is taken away.
 * @param {Scene} scene @param {Lane} one @param {boolean} isChosen
 * @param {{y: number, lane: number, spans: RowSpans, shares: BarScale}} place */
function drawSigned(scene, one, isChosen, {y, lane, spans, shares: {zero, unit}}) {
  const tags = `weight weight-${tagOf(one)}`;
  const thick = Math.min(20, lane * 0.62);
  const role = `${one.weight < 0 ? "av-less" : "av-weight"} ${isChosen ? "" : "av-middling"}`;
  const kind = `${lane < 18 ? "av-small" : "av-weighed"} ${isChosen ? "av-strong" : ""}`;
  const blocked = one.entry === -Infinity;
  scene.add(
    tags,
    blocked ? null : bar(zero, y - thick / 2, one.weight * unit, thick, `av-solid av-share ${role}`),
    label(spans.weights + spans.room, y + 4.5, kind, blocked ? "0" : weightText(one.weight), "end"),
  );
}

/** @param {Scene} scene @param {Lane} one @param {boolean} isChosen
 * @param {{y: number, lane: number, spans: RowSpans}} place */
function drawWeight(scene, one, isChosen, {y, lane, spans}) {
  const tags = `weight weight-${tagOf(one)}`;
  const thick = Math.min(20, lane * 0.62);
  const length = one.weight * spans.room;
  // Beside the bar there is room for "0.58", or it is long enough to hold it.
  const inside = length > 40;
  const blocked = one.entry === -Infinity;
  if (!blocked)
    scene.add(
      tags,
      bar(
        spans.weights,
        y - thick / 2,
        length,
        thick,
        `av-solid av-share ${one.kind === "sink" ? "av-less" : "av-weight"} ${isChosen ? "" : "av-middling"}`,
      ),
    );
  const kind = `${lane < 18 ? "av-small" : "av-weighed"} ${isChosen ? "av-strong" : ""} ${inside && isChosen ? "av-on-weight" : ""} ${blocked ? "av-muted" : ""}`;
  scene.add(
    tags,
    label(
      spans.weights + (inside ? length - 5 : length + 5),
      y + 4.5,
      kind,
      blocked ? "0" : weightText(one.weight),
      inside ? "end" : "start",
    ),
  );
}
