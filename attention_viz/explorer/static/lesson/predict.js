// A question of the course: a gesture to guess with, and on the same drawing what is true, the guess dashed.
//
// The numbers come once the guess is made. What the reader says goes to the page as text, as it stands in the address:
// whole numbers joined by dots, which each kind of question reads in its own way; "shown" for none.

import {element} from "../parts/element.js";
import {mountComponent} from "../hosts/component.js";
import {barsOutcome, drawBars} from "./openings/shares.js";
import {drawLines, linesOutcome} from "./openings/lines.js";
import {drawMap, mapOutcome} from "./openings/map.js";
import {drawMask, maskOutcome} from "./openings/mask.js";
import {drawPlaces, placesOutcome} from "./openings/places.js";
import {drawSliders, slidersOutcome} from "./openings/sliders.js";
import {drawTurn, turnOutcome} from "./openings/turn.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js" */

/** What is asked. `opening` is what its kind draws, `how` its instruction, `bars` whether the answer has bars, too; `guess` is text as in the
 * address; `truth` is null until it is shown. `pressed` says by option whether pressing it asks for something.
 * @typedef {object} Question
 * @property {string} id
 * @property {string} kind
 * @property {any} opening
 * @property {string} how
 * @property {boolean} bars
 * @property {string[]} options
 * @property {boolean} shares
 * @property {number | null} query
 * @property {boolean[]} pressed
 * @property {[count: number, most: number]} numbers how many numbers a guess has, and the largest that each can be
 * @property {string | null} guess
 * @property {Truth | null} truth
 * @property {string} source whose numbers are asked for
 * @property {{bars: string, show: string, skip: string, guess: string, asks: string}} words */

/** @typedef {{mark: "right" | "near" | "wrong", words: string}} Reply */
/** @typedef {{lengths: number[], written: string[], right: number[], replies: Reply[], opening: any}} Truth */

/** `choose` takes what the reader guesses now.
 * @typedef {Mounted & {question: Question, guess: string | null, choose: (guess: string | null) => void}} Prediction */

/** How a kind of question is drawn, and which of its replies a guess gets.
 * @typedef {{draw: (prediction: Prediction) => HTMLElement,
 *   outcome: (question: Question, guess: number[]) => number}} Kind */

/** @type {Record<string, Kind>} */
const KINDS = {
  bars: {draw: drawBars, outcome: barsOutcome},
  lines: {draw: drawLines, outcome: linesOutcome},
  map: {draw: drawMap, outcome: mapOutcome},
  mask: {draw: drawMask, outcome: maskOutcome},
  places: {draw: drawPlaces, outcome: placesOutcome},
  sliders: {draw: drawSliders, outcome: slidersOutcome},
  turn: {draw: drawTurn, outcome: turnOutcome},
};

/** @param {Mounting} mounting */
export function predictComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-lesson",
    create: (base) => /** @type {Prediction} */ (base),
    load(prediction, /** @type {Question} */ question) {
      Object.assign(prediction, {question, guess: question.guess});
      drawPrediction(prediction);
    },
    // What the reader is guessing stays until the answer comes.
    same: (before, question) => before.id === question.id && !before.truth && !question.truth,
  });
}

/** The reply to a guess, which is text as in the address, once the answer is there.
 * @param {Question} question @param {string} guess @returns {Reply | null} */
export function replyTo(question, guess) {
  const place = KINDS[question.kind]?.outcome(question, guess.split(".").map(Number));
  return question.truth?.replies[place ?? -1] ?? null;
}

/** @param {Prediction} prediction */
function drawPrediction(prediction) {
  const {root, question} = prediction;
  const show = element("button", {type: "button", class: "av-show", disabled: true}, question.words.show);
  prediction.choose = (guess) => {
    prediction.guess = guess;
    show.disabled = guess === null;
  };
  root.dataset["shown"] = String(Boolean(question.truth));
  root.dataset["kind"] = question.kind;
  root.style.setProperty("--av-rows", String(question.options.length));
  root.style.setProperty("--av-longest", String(Math.max(...question.options.map((name) => name.length))));
  const drawn = KINDS[question.kind]?.draw(prediction) ?? drawBars(prediction);
  const side = element("div", {class: "av-side"});
  if (question.kind !== "bars" && question.truth && question.bars) side.append(drawBars(prediction));
  side.append(makeFoot(prediction, show));
  root.replaceChildren(drawn, side);
  prediction.choose(prediction.guess);
  if (question.truth) awaitMove(root);
}

/** What comes under a pointer that rests isn't pointed at. @param {HTMLElement} root */
function awaitMove(root) {
  if (root.dataset["still"]) return;
  root.dataset["still"] = "true";
  /** @param {PointerEvent} event */
  const move = ({movementX, movementY}) => {
    if (!movementX && !movementY) return;
    delete root.dataset["still"];
    removeEventListener("pointermove", move);
  };
  addEventListener("pointermove", move);
}

/** @param {Prediction} prediction @param {HTMLButtonElement} show */
function makeFoot(prediction, show) {
  const {question} = prediction;
  const foot = element("div", {class: "av-foot"});
  if (question.truth) {
    // Sliders write the guess beside the model's score.
    const dashed = question.guess && question.kind !== "sliders";
    if (dashed) foot.append(element("s", {"aria-hidden": "true"}), element("span", {}, question.words.guess));
    return foot;
  }
  show.addEventListener("click", () => prediction.setTriggerValue("guess", prediction.guess ?? "shown"));
  const skip = element("button", {type: "button", class: "av-skip"}, question.words.skip);
  skip.addEventListener("click", () => prediction.setTriggerValue("guess", "shown"));
  foot.append(show, skip, element("span", {class: "av-source"}, question.source));
  return foot;
}
