// Scores to set: their softmax answers live, beside the shares that are wanted.

import {element} from "../../parts/element.js";

/** @import {Prediction, Question} from "../predict.js" */

/** `lowest` is in tenths, `off` how far a share may be off, right and nearly.
 * @typedef {{names: string[], wanted: number[], lowest: number, steps: number, off: [number, number], label: string,
 *   score: string, share: string, target: string}} Sliders */

/** The softmax of scores. @param {readonly number[]} scores */
export function softmaxOf(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((one) => Math.exp(one - most));
  const sum = powers.reduce((total, one) => total + one, 0);
  return powers.map((one) => one / sum);
}

/** The scores that a guess stands for. @param {Sliders} sliders @param {readonly number[]} guess */
function scoresOf({lowest}, guess) {
  return guess.map((one) => (lowest + one) / 10);
}

/** @param {Question} question @param {number[]} guess */
export function slidersOutcome({opening}, guess) {
  const sliders = /** @type {Sliders} */ (opening);
  const shares = softmaxOf(scoresOf(sliders, guess));
  const far = Math.max(...shares.map((share, at) => Math.abs(share - (sliders.wanted[at] ?? 0))));
  const [right, near] = sliders.off;
  return far <= right ? 0 : far <= near ? 1 : 2;
}

/** @param {number} number @param {number} digits */
function written(number, digits) {
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** @param {Prediction} prediction */
export function drawSliders(prediction) {
  const {opening, truth, guess} = prediction.question;
  const sliders = /** @type {Sliders} */ (opening);
  const stands = guess?.split(".").map(Number) ?? sliders.names.map(() => -sliders.lowest);
  const rows = sliders.names.map((name, at) => makeSlider(sliders, name, at));
  const show = () => {
    const scores = scoresOf(sliders, stands);
    softmaxOf(scores).forEach((share, at) => {
      const row = rows[at];
      if (!row) return;
      row.number.textContent = written(scores[at] ?? 0, 1);
      showShare(row, sliders, share, stands[at] ?? 0);
      row.node.dataset["hit"] = String(Math.abs(share - (sliders.wanted[at] ?? 0)) <= sliders.off[0]);
    });
  };
  rows.forEach(({input}, at) => {
    input.disabled = Boolean(truth);
    input.addEventListener("input", () => {
      stands[at] = Number(input.value);
      prediction.choose(stands.join("."));
      show();
    });
  });
  show();
  const box = element("div", {class: "av-gesture av-sliders", role: "group", "aria-label": sliders.label});
  box.append(...rows.map(({node}) => node));
  if (truth) addModel(box, rows, sliders, truth.opening, guess !== null);
  return box;
}

/** The model's scores beside the reader's, or in their place if there was no guess. @param {HTMLElement} box
 * @param {ReturnType<typeof makeSlider>[]} rows @param {Sliders} sliders @param {{scores: number[], own: string}} own
 * @param {boolean} guessed */
function addModel(box, rows, sliders, {scores, own}, guessed) {
  const stands = scores.map((score) => 10 * score - sliders.lowest);
  const shares = softmaxOf(scores);
  rows.forEach((row, at) => {
    const {input, number, node} = row;
    const model = element("b", {}, written(scores[at] ?? 0, 2));
    number.replaceChildren(...(guessed ? [`${number.textContent} `] : []), model);
    if (guessed) return;
    input.step = "any";
    input.min = String(Math.min(0, ...stands));
    input.max = String(Math.max(sliders.steps, ...stands));
    showShare(row, sliders, shares[at] ?? 0, stands[at] ?? 0);
    node.dataset["hit"] = "true";
  });
  box.append(element("p", {class: "av-sum"}, own));
}

/** Show a score's share, and its knob where it stands; the score's own number is there already.
 * @param {ReturnType<typeof makeSlider>} row @param {Sliders} sliders @param {number} part @param {number} stands */
function showShare({bar, share, input, number}, sliders, part, stands) {
  bar.style.width = `${100 * part}%`;
  share.textContent = part.toFixed(2);
  input.value = String(stands);
  input.setAttribute("aria-valuetext", `${number.textContent}, ${sliders.share} ${share.textContent}`);
}

/** @param {Sliders} sliders @param {string} name @param {number} at */
function makeSlider(sliders, name, at) {
  const {lowest, steps, wanted} = sliders;
  const input = element("input", {
    ...{type: "range", min: 0, max: steps, step: 1, value: -lowest},
    "aria-label": `${name}: ${sliders.score}`,
  });
  const number = element("span", {class: "av-number"});
  const bar = element("i");
  const mark = element("u", {title: sliders.target});
  mark.style.width = `${100 * (wanted[at] ?? 0)}%`;
  const share = element("span", {class: "av-number"});
  const target = element("span", {class: "av-target"}, `${sliders.target} ${(wanted[at] ?? 0).toFixed(2)}`);
  const node = element("div", {class: "av-slid"});
  node.append(element("span", {class: "av-name", title: name}, name), target);
  node.append(element("span", {class: "av-what"}, sliders.score), input, number);
  node.append(
    element("span", {class: "av-what"}, sliders.share),
    element("div", {class: "av-track"}, bar, mark),
    share,
  );
  return {node, input, number, bar, share};
}
