// A query that turns against a key in their plane: its angle live, the score after the answer.

import {element, svg} from "../../parts/element.js";
import {moveHandle} from "./handle.js";

/** @import {Prediction, Question} from "../predict.js" */

/** @typedef {{word: string, other: string, lengths: [number, number], goal: number, steps: [number, number],
 *   label: string, handle: string, degrees: string, score: string, query: string, key: string}} Turn */

// The drawing in dots, its longest arrow, and where the key points, in degrees: off the axes, so that two products count.
const [TURN_WIDE, TURN_HIGH, LONGEST, KEY_AT] = [340, 300, 120, 25];
// Room for the arrows' names under them, where no arrow points.
const NAMES_HIGH = 44;
// Where the query points at first, from the key, and how far an arrow key turns it.
const [BEGINS_AT, TURNED] = [130, 5];

/** @param {Question} question @param {number[]} guess */
export function turnOutcome({opening}, [angle = 0]) {
  const {goal, steps} = /** @type {Turn} */ (opening);
  const [right, near] = steps;
  const off = Math.abs(fromKey(angle) - goal);
  return off <= right ? 0 : off <= near ? 1 : 2;
}

/** The angle between both arrows, whichever way the query turned. @param {number} angle */
function fromKey(angle) {
  return Math.min(angle, 360 - angle);
}

/** A direction's two numbers. @param {number} length @param {number} degrees @returns {[number, number]} */
function turned(length, degrees) {
  const angle = (degrees * Math.PI) / 180;
  return [length * Math.cos(angle), length * Math.sin(angle)];
}

/** @param {number} number */
function twoDigits(number) {
  const text = number.toFixed(2);
  return text === "-0.00" ? "0.00" : text.replace("-", "−");
}

/** A factor of a product: below zero in brackets. @param {number} number */
function factor(number) {
  const text = twoDigits(number);
  return text.startsWith("−") ? `(${text})` : text;
}

/** @param {Prediction} prediction */
export function drawTurn(prediction) {
  const {truth, opening, guess} = prediction.question;
  const turn = /** @type {Turn} */ (opening);
  const field = svg("svg", {viewBox: `0 0 ${TURN_WIDE} ${TURN_HIGH + NAMES_HIGH}`, class: "av-field"});
  const [cx, cy] = [TURN_WIDE / 2, TURN_HIGH / 2];
  field.append(
    svg("rect", {class: "av-ground", width: TURN_WIDE, height: TURN_HIGH, rx: 6}),
    svg("line", {x1: 8, y1: cy, x2: TURN_WIDE - 8, y2: cy, class: "av-axis"}),
    svg("line", {x1: cx, y1: 8, x2: cx, y2: TURN_HIGH - 8, class: "av-axis"}),
  );
  const scale = LONGEST / Math.max(...turn.lengths);
  const sum = element("p", {class: "av-sum"});
  const box = element("div", {class: "av-gesture av-turn", role: "group", "aria-label": turn.label}, field, sum);
  /** @param {number} length @param {number} degrees @param {string} kind */
  const arrow = (length, degrees, kind) => {
    const [x, y] = turned(length * scale, degrees);
    const shaft = svg("line", {x1: cx, y1: cy, x2: cx + x, y2: cy - y, class: kind});
    const points = [155, -155].map((by) => turned(14, degrees + by)).map(([a, b]) => `${cx + x + a},${cy - y - b}`);
    return svg("g", {}, shaft, svg("polygon", {points: `${cx + x},${cy - y} ${points.join(" ")}`, class: kind}));
  };
  field.append(arrow(turn.lengths[1], KEY_AT, "av-key"));
  if (truth && guess) field.append(arrow(turn.lengths[0], KEY_AT + Number(guess), "av-was"));
  const moving = svg("g", {});
  field.append(moving, ...legend(turn, truth?.opening.own));
  /** @param {number} angle */
  const show = (angle) => {
    moving.replaceChildren(arrow(turn.lengths[0], KEY_AT + angle, "av-query"));
    if (!truth) {
      sum.textContent = turn.degrees.replace("{angle}", String(fromKey(angle)));
      return;
    }
    const [a, b] = turned(turn.lengths[0], KEY_AT + angle);
    const [c, d] = turned(turn.lengths[1], KEY_AT);
    const products = `${factor(a)} · ${factor(c)} + ${factor(b)} · ${factor(d)} = `;
    sum.replaceChildren(`${turn.score} = ${products}`, element("b", {}, twoDigits(a * c + b * d)));
  };
  if (truth) show(truth.opening.angle);
  else addTurning(prediction, field, show, turn, scale);
  return box;
}

/** Both arrows by name, in their colours. @param {Turn} turn @param {string} [own] */
function legend(turn, own) {
  return [
    svg("text", {x: 4, y: TURN_HIGH + 18, class: "av-query"}, own ? `${turn.query}, ${own}` : turn.query),
    svg("text", {x: 4, y: TURN_HIGH + 38, class: "av-key"}, turn.key),
  ];
}

/** @param {Prediction} prediction @param {SVGElement} field @param {(angle: number) => void} show @param {Turn} turn
 * @param {number} scale */
function addTurning(prediction, field, show, turn, scale) {
  const handle = svg("circle", {class: "av-handle", r: 13, role: "slider", tabindex: 0, "aria-label": turn.handle});
  handle.setAttribute("aria-valuemin", "0");
  handle.setAttribute("aria-valuemax", "359");
  let angle = prediction.guess === null ? BEGINS_AT : Number(prediction.guess);
  const place = () => {
    const [x, y] = turned(turn.lengths[0] * scale, KEY_AT + angle);
    handle.setAttribute("cx", String(TURN_WIDE / 2 + x));
    handle.setAttribute("cy", String(TURN_HIGH / 2 - y));
    show(angle);
    handle.setAttribute("aria-valuenow", String(angle));
    handle.setAttribute("aria-valuetext", turn.degrees.replace("{angle}", String(fromKey(angle))));
  };
  /** @param {number} degrees */
  const turnTo = (degrees) => {
    angle = ((Math.round(degrees) % 360) + 360) % 360;
    prediction.choose(String(angle));
    place();
  };
  /** @param {MouseEvent} event */
  const follow = (event) => {
    const {left, top, width} = field.getBoundingClientRect();
    const [x, y] = [event.clientX - left - width / 2, top + (width * TURN_HIGH) / TURN_WIDE / 2 - event.clientY];
    if (width && Math.hypot(x, y) > 4) turnTo((Math.atan2(y, x) * 180) / Math.PI - KEY_AT);
  };
  moveHandle(field, handle, {follow, step: (down, across) => turnTo(angle + (-down - across) * TURNED)});
  place();
}
