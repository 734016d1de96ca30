// A map of words on which one is missing: it is dragged, placed by a click, or moved by the arrow keys.

import {element, svg} from "../../parts/element.js";
import {moveHandle} from "./handle.js";

/** @import {Prediction, Question} from "../predict.js" */

/** @typedef {{word: string, words: string[], points: [number, number][], label: string, handle: string, nearest: string}} WordMap */
/** @typedef {{left: number, right: number, top: number}} LabelBox */

// Sides in dots: the map, and below it the tray where the word waits.
const [MAP_SIDE, TRAY] = [340, 36];
// A letter's width and a label's height, and how far an arrow key moves, in percent.
const [LETTER, LABEL_HIGH, KEY_STEP] = [7.6, 15, 4];

/** The word that is nearest to a place in percent. @param {readonly [number, number][]} points @param {number[]} place */
function nearestPoint(points, [x = 0, y = 0]) {
  const far = points.map(([a, b]) => Math.hypot(a - x / 100, b - y / 100));
  return far.indexOf(Math.min(...far));
}

/** @param {Question} question @param {number[]} guess */
export function mapOutcome({opening}, guess) {
  return nearestPoint(/** @type {WordMap} */ (opening).points, guess);
}

/** A free place for a word's label over or under its dot. @param {LabelBox[]} taken @param {string} word
 * @param {number} x @param {number} y */
function placeLabel(taken, word, x, y) {
  const half = (word.length * LETTER) / 2;
  const middle = Math.min(MAP_SIDE - half - 2, Math.max(half + 2, x));
  const [left, right] = [middle - half, middle + half];
  const free = [-8, 20, -8 - LABEL_HIGH, 20 + LABEL_HIGH, -8 - 2 * LABEL_HIGH, 20 + 2 * LABEL_HIGH]
    .map((by) => y + by)
    .find((top) => taken.every((one) => one.right < left || right < one.left || Math.abs(one.top - top) >= LABEL_HIGH));
  taken.push({left, right, top: free ?? y});
  return {x: middle, y: free ?? y};
}

/** @param {Prediction} prediction */
export function drawMap(prediction) {
  const {question} = prediction;
  const map = /** @type {WordMap} */ (question.opening);
  const field = svg("svg", {viewBox: `0 0 ${MAP_SIDE} ${MAP_SIDE + (question.truth ? 0 : TRAY)}`, class: "av-field"});
  field.append(svg("rect", {class: "av-ground", width: MAP_SIDE, height: MAP_SIDE, rx: 6}));
  /** @type {LabelBox[]} */
  const taken = [];
  const dots = map.points.map(([x, y]) => [x * MAP_SIDE, y * MAP_SIDE]);
  if (question.truth) drawTruth(field, question, taken);
  dots.forEach(([x = 0, y = 0], at) => {
    const best = question.truth?.right.includes(at);
    field.append(svg("circle", {cx: x, cy: y, r: 3.5, class: best ? "av-best" : "av-dot"}));
    const name = map.words[at] ?? "";
    field.append(svg("text", {...placeLabel(taken, name, x, y), class: best ? "av-best" : "av-word"}, name));
  });
  if (!question.truth) addHandle(prediction, field, map);
  return element("div", {class: "av-gesture av-map", role: "group", "aria-label": map.label}, field);
}

/** @param {SVGElement} field @param {Question} question @param {LabelBox[]} taken */
function drawTruth(field, {opening, truth, guess}, taken) {
  const map = /** @type {WordMap} */ (opening);
  const [x, y] = /** @type {number[]} */ (truth?.opening.point ?? []).map((one) => one * MAP_SIDE);
  for (const at of truth?.right ?? []) {
    const [a = 0, b = 0] = map.points[at] ?? [];
    field.append(svg("line", {x1: x, y1: y, x2: a * MAP_SIDE, y2: b * MAP_SIDE, class: "av-near"}));
  }
  if (guess) {
    const [a = 0, b = 0] = guess.split(".").map((one) => (Number(one) / 100) * MAP_SIDE);
    field.append(svg("circle", {cx: a, cy: b, r: 11, class: "av-was"}));
  }
  field.append(svg("circle", {cx: x, cy: y, r: 6, class: "av-own"}));
  field.append(svg("text", {...placeLabel(taken, map.word, x ?? 0, y ?? 0), class: "av-own"}, map.word));
}

/** @param {Prediction} prediction @param {SVGElement} field @param {WordMap} map */
function addHandle(prediction, field, map) {
  const half = Math.max(24, (map.word.length * LETTER) / 2 + 10);
  const handle = svg(
    "g",
    {
      class: "av-handle",
      role: "slider",
      tabindex: 0,
      "aria-label": map.handle,
      "aria-valuemin": 0,
      "aria-valuemax": 100,
    },
    svg("rect", {x: -half, y: -13, width: 2 * half, height: 26, rx: 13}),
    svg("text", {y: 4.5}, map.word),
  );
  let place = prediction.guess?.split(".").map(Number) ?? null;
  const show = () => {
    const [x, y] = place ? place.map((one) => (one / 100) * MAP_SIDE) : [MAP_SIDE / 2, MAP_SIDE + TRAY / 2];
    handle.setAttribute("transform", `translate(${x} ${y})`);
    const near = place ? `${map.nearest} ${map.words[nearestPoint(map.points, place)]}` : "–";
    handle.setAttribute("aria-valuenow", String(place?.[0] ?? 50));
    handle.setAttribute("aria-valuetext", near);
  };
  /** @param {number} x @param {number} y */
  const put = (x, y) => {
    place = [x, y].map((one) => Math.round(Math.min(100, Math.max(0, one))));
    prediction.choose(place.join("."));
    show();
  };
  /** @param {MouseEvent} event */
  const follow = (event) => {
    const {left, top, width} = field.getBoundingClientRect();
    if (width) put(((event.clientX - left) / width) * 100, ((event.clientY - top) / width) * 100);
  };
  /** @param {number} down @param {number} across */
  const step = (down, across) => {
    const [x = 50, y = 50] = place ?? [];
    put(x + across * KEY_STEP, y + down * KEY_STEP);
  };
  moveHandle(field, handle, {follow, step});
  show();
}
