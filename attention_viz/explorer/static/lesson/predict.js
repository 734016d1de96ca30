// A question of the course: bars to guess on, and on the same bars what is true, the guess a dashed line around it.
//
// The numbers come once the guess is made. What the reader says goes to the page as text, as it stands in the address:
// "5" for the sixth option, "10.60.30" for shares in percent, "shown" for none.

import {arrowStep, element} from "../parts/element.js";
import {mountComponent} from "../hosts/component.js";
import {evenShares, giveShare, nameMost, readShares, toPercents} from "./guess.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js" */

/** What is asked. `guess` is text as in the address; `truth` is null until it is shown. `pressed` says by option whether pressing it asks for something.
 * @typedef {object} Question
 * @property {string} id
 * @property {string[]} options
 * @property {boolean} shares
 * @property {number | null} query
 * @property {boolean[]} pressed
 * @property {string | null} guess
 * @property {{lengths: number[], written: string[], right: number[]} | null} truth
 * @property {string} source whose numbers are asked for
 * @property {OnPicture | null} picture what is guessed on, in place of bars
 * @property {{bars: string, show: string, skip: string, guess: string, asks: string}} words */

/** An image, and by option its box (top, left, height, width in shares of it), for the first of them.
 * @typedef {{image: string, boxes: [number, number, number, number][], blocked: boolean[]}} OnPicture */

/** @typedef {Mounted & {question: Question, guess: number[] | null}} Prediction */

const ONE_STEP = 0.05;

/** @param {Mounting} mounting */
export default function predictComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-lesson",
    create: (base) => /** @type {Prediction} */ (base),
    load(prediction, /** @type {Question} */ question) {
      const {guess, options, shares} = question;
      Object.assign(prediction, {question, guess: guess === null ? null : readShares(guess, options.length, shares)});
      drawPrediction(prediction);
    },
    // What the reader is guessing stays until the answer comes.
    same: (before, question) => before.id === question.id && !before.truth && !question.truth,
  });
}

/** @param {Prediction} prediction */
function drawPrediction(prediction) {
  const {root, question} = prediction;
  root.style.setProperty("--av-rows", String(question.options.length));
  root.style.setProperty("--av-longest", String(Math.max(...question.options.map((name) => name.length))));
  root.dataset["shown"] = question.truth ? "true" : "false";
  const {picture} = question;
  const list = element("ul", {"aria-label": question.words.bars, class: picture && "av-places"});
  if (picture) list.style.backgroundImage = `url("${picture.image}")`;
  list.append(...question.options.map((_, at) => makeRow(prediction, at)));
  root.replaceChildren(list, makeFoot(prediction));
  refresh(prediction);
}

/** @param {Prediction} prediction @param {number} at */
function makeRow(prediction, at) {
  const {question} = prediction;
  const name = question.options[at] ?? "";
  const asks = question.query === at;
  const free = !question.truth || (question.pressed[at] ?? false);
  const label = element(
    free ? "button" : "span",
    {
      ...{class: "av-option", "data-asks": asks, title: name},
      ...(free ? {type: "button", onclick: () => press(prediction, at)} : {}),
      ...(question.truth && free ? {"aria-label": `${name}: ${question.words.asks}`} : {}),
    },
    name,
  );
  const bar = element("div", {class: "av-guess"}, element("i"), element("u", {hidden: true}));
  if (!question.truth) {
    if (question.shares) {
      const slides = {role: "slider", tabindex: 0, "aria-label": name, "aria-valuemin": 0, "aria-valuemax": 100};
      for (const [attribute, value] of Object.entries(slides)) bar.setAttribute(attribute, String(value));
      slide(prediction, bar, at);
    } else bar.addEventListener("click", () => press(prediction, at));
  }
  const row = element("li", {}, label, bar, element("span", {class: "av-number"}));
  if (question.picture) placeOnPicture(row, question.picture, at);
  return row;
}

/** @param {HTMLElement} row @param {OnPicture} picture @param {number} at */
function placeOnPicture(row, {boxes, blocked}, at) {
  row.dataset["boxed"] = String(at < boxes.length);
  row.dataset["blocked"] = String(blocked[at] ?? false);
  const sides = /** @type {const} */ (["top", "left", "height", "width"]);
  for (const [side, share] of (boxes[at] ?? []).entries()) row.style[sides[side] ?? "top"] = `${100 * share}%`;
}

/** @param {Prediction} prediction */
function makeFoot(prediction) {
  const {question} = prediction;
  const foot = element("div", {class: "av-foot"});
  if (question.truth) {
    if (question.guess) foot.append(element("s", {"aria-hidden": "true"}), element("span", {}, question.words.guess));
    return foot;
  }
  const show = element("button", {type: "button", class: "av-show", disabled: true}, question.words.show);
  show.addEventListener("click", () => prediction.setTriggerValue("guess", written(prediction)));
  const skip = element("button", {type: "button", class: "av-skip"}, question.words.skip);
  skip.addEventListener("click", () => prediction.setTriggerValue("guess", "shown"));
  foot.append(show, skip, element("span", {class: "av-source"}, question.source));
  return foot;
}

/** Bars, numbers and what can be pressed, as they stand now. @param {Prediction} prediction */
function refresh(prediction) {
  const {root, question, guess} = prediction;
  const {truth} = question;
  const stands = guess ?? (question.shares ? evenShares(question.options.length) : []);
  root.querySelectorAll("li").forEach((row, at) => {
    const [share, bar] = [stands[at] ?? 0, /** @type {HTMLElement} */ (row.querySelector(".av-guess"))];
    const [inner, outline] = [bar.querySelector("i"), bar.querySelector("u")];
    const number = row.querySelector(".av-number");
    const best = truth ? truth.right.includes(at) : guess !== null && share === Math.max(...stands) && share > 0;
    row.dataset["best"] = String(best);
    if (inner) inner.style.width = `${100 * (truth ? (truth.lengths[at] ?? 0) : share)}%`;
    if (outline) {
      outline.hidden = !truth || !guess || share === 0;
      outline.style.width = `${100 * share}%`;
    }
    const told = truth ? truth.written[at] : question.shares ? share.toFixed(2) : "";
    if (number) number.textContent = told ?? "";
    // A bar is as long as its number is far from 0; below 0 it is hatched.
    row.dataset["below"] = String(told?.startsWith("−") ?? false);
    if (bar.role === "slider") {
      bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
      bar.setAttribute("aria-valuetext", share.toFixed(2));
    }
    const option = row.querySelector("button.av-option");
    if (option && !truth) option.setAttribute("aria-pressed", String(best));
  });
  const show = /** @type {HTMLButtonElement | null} */ (root.querySelector(".av-show"));
  if (show) show.disabled = guess === null;
}

/** Before the answer is shown an option that is pressed is the guess; a word asks then.
 * @param {Prediction} prediction @param {number} at */
function press(prediction, at) {
  const {question} = prediction;
  if (question.truth) {
    prediction.setTriggerValue("press", at);
    return;
  }
  const count = question.options.length;
  prediction.guess = question.shares
    ? nameMost(count, at)
    : Array.from({length: count}, (_, place) => Number(place === at));
  refresh(prediction);
}

/** A bar is pulled, or moved by the arrows.
 * @param {Prediction} prediction @param {HTMLElement} bar @param {number} at */
function slide(prediction, bar, at) {
  /** @param {number} share */
  const give = (share) => {
    prediction.guess = giveShare(prediction.guess ?? evenShares(prediction.question.options.length), at, share);
    refresh(prediction);
  };
  /** @param {PointerEvent} event */
  const follow = (event) => {
    const {left, width} = bar.getBoundingClientRect();
    if (width) give((event.clientX - left) / width);
  };
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    follow(event);
  });
  bar.addEventListener("pointermove", (event) => {
    if (bar.hasPointerCapture(event.pointerId)) follow(event);
  });
  bar.addEventListener("keydown", (event) => {
    const share = (prediction.guess ?? evenShares(prediction.question.options.length))[at] ?? 0;
    const [down, across] = arrowStep(event.key) ?? [0, 0];
    if (down || across) give(share + (across - down) * ONE_STEP);
    else if (event.key === "Home" || event.key === "End") give(Number(event.key === "End"));
    else return;
    event.preventDefault();
  });
}

/** The guess as the address keeps it. @param {Prediction} prediction */
function written({question, guess}) {
  if (!guess) return "shown";
  return question.shares ? toPercents(guess).join(".") : String(guess.indexOf(1));
}
