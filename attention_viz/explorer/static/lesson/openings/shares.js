// Bars to guess on: shares of 1, or one option; once it is shown the truth is on the same bars.

import {arrowStep, element} from "../../parts/element.js";
import {evenShares, giveShare, nameMost, readShares, toPercents} from "../guess.js";
import {followPointer} from "./handle.js";

/** @import {Prediction, Question} from "../predict.js" */

const ONE_STEP = 0.05;

/** What the bars show: the reader's shares while they guess. @typedef {{shares: number[] | null}} Guessed */

/** The option that has most of a guess. @param {Question} question @param {number[]} guess */
export function barsOutcome({shares}, guess) {
  return shares ? guess.indexOf(Math.max(...guess)) : (guess[0] ?? -1);
}

/** @param {Prediction} prediction */
export function drawBars(prediction) {
  const {options, words, shares, kind, guess} = prediction.question;
  const list = element("ul", {"aria-label": words.bars, class: "av-bars"});
  // Beside another drawing the bars are the answer alone.
  const guessed = {shares: kind === "bars" && guess ? readShares(guess, options.length, shares) : null};
  list.append(...options.map((_, at) => makeBar(prediction, list, guessed, at)));
  refreshBars(prediction, list, guessed);
  return list;
}

/** @param {Prediction} prediction @param {HTMLElement} list @param {Guessed} guessed @param {number} at */
function makeBar(prediction, list, guessed, at) {
  const {question} = prediction;
  const name = question.options[at] ?? "";
  const free = !question.truth || (question.pressed[at] ?? false);
  const press = () => pressBar(prediction, list, guessed, at);
  const label = element(
    free ? "button" : "span",
    {
      ...{class: "av-option", "data-asks": question.query === at, title: name},
      ...(free ? {type: "button", onclick: press} : {}),
      ...(question.truth && free ? {"aria-label": `${name}: ${question.words.asks}`} : {}),
    },
    name,
  );
  const bar = element("div", {class: "av-guess"}, element("i"), element("u", {hidden: true}));
  if (!question.truth) {
    if (question.shares) {
      const slides = {role: "slider", tabindex: 0, "aria-label": name, "aria-valuemin": 0, "aria-valuemax": 100};
      for (const [attribute, value] of Object.entries(slides)) bar.setAttribute(attribute, String(value));
      slideBar(prediction, list, guessed, bar, at);
    } else bar.addEventListener("click", press);
  }
  return element("li", {}, label, bar, element("span", {class: "av-number"}));
}

/** Bars, numbers and what can be pressed, as they stand now.
 * @param {Prediction} prediction @param {HTMLElement} list @param {Guessed} guessed */
function refreshBars(prediction, list, guessed) {
  const {question} = prediction;
  const {truth} = question;
  const stands = guessed.shares ?? (question.shares ? evenShares(question.options.length) : []);
  list.querySelectorAll("li").forEach((row, at) => {
    const [share, bar] = [stands[at] ?? 0, /** @type {HTMLElement} */ (row.querySelector(".av-guess"))];
    const [inner, outline] = [bar.querySelector("i"), bar.querySelector("u")];
    const number = row.querySelector(".av-number");
    const guess = guessed.shares;
    const best = truth ? truth.right.includes(at) : guess !== null && share === Math.max(...guess) && share > 0;
    row.dataset["best"] = String(best);
    if (inner) inner.style.width = `${100 * (truth ? (truth.lengths[at] ?? 0) : share)}%`;
    if (outline) {
      outline.hidden = !truth || !guess || share === 0;
      outline.style.width = `${100 * share}%`;
    }
    const text = truth ? truth.written[at] : question.shares ? share.toFixed(2) : "";
    if (number) number.textContent = text ?? "";
    // A bar is as long as its number is far from 0; below 0 it is hatched.
    row.dataset["below"] = String(text?.startsWith("−") ?? false);
    if (bar.role === "slider") {
      bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
      bar.setAttribute("aria-valuetext", share.toFixed(2));
    }
    const option = row.querySelector("button.av-option");
    if (option && !truth) option.setAttribute("aria-pressed", String(best));
  });
}

/** Before the answer is shown an option that is pressed is the guess; a word asks then.
 * @param {Prediction} prediction @param {HTMLElement} list @param {Guessed} guessed @param {number} at */
function pressBar(prediction, list, guessed, at) {
  const {truth, options, shares} = prediction.question;
  if (truth) {
    prediction.setTriggerValue("press", at);
    return;
  }
  const one = Array.from(options, (_, place) => Number(place === at));
  takeShares(prediction, list, guessed, shares ? nameMost(options.length, at) : one);
}

/** @param {Prediction} prediction @param {HTMLElement} list @param {Guessed} guessed @param {number[]} shares */
function takeShares(prediction, list, guessed, shares) {
  guessed.shares = shares;
  prediction.choose(prediction.question.shares ? toPercents(shares).join(".") : String(shares.indexOf(1)));
  refreshBars(prediction, list, guessed);
}

/** A bar is pulled, or moved by the arrows.
 * @param {Prediction} prediction @param {HTMLElement} list @param {Guessed} guessed @param {HTMLElement} bar
 * @param {number} at */
function slideBar(prediction, list, guessed, bar, at) {
  const shares = () => guessed.shares ?? evenShares(prediction.question.options.length);
  /** @param {number} share */
  const give = (share) => takeShares(prediction, list, guessed, giveShare(shares(), at, share));
  /** @param {PointerEvent} event */
  const follow = (event) => {
    const {left, width} = bar.getBoundingClientRect();
    if (width) give((event.clientX - left) / width);
  };
  followPointer(bar, follow);
  bar.addEventListener("pointerdown", follow);
  bar.addEventListener("keydown", (event) => {
    const [down, across] = arrowStep(event.key) ?? [0, 0];
    if (down || across) give((shares()[at] ?? 0) + (across - down) * ONE_STEP);
    else if (event.key === "Home" || event.key === "End") give(Number(event.key === "End"));
    else return;
    event.preventDefault();
  });
}
