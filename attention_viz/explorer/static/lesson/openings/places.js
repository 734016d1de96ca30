// Places of an image: one is pressed, and has its number in its corner once the answer is there.

import {arrowStep, element, focusOne} from "../../parts/element.js";

/** @import {Prediction, Question} from "../predict.js" */

/** An image, and by option its box (top, left, height, width in shares of it), for the first of them.
 * @typedef {{image: string, boxes: [number, number, number, number][], across: number, label: string, press: string}} Places */

// With more boxes, only those that count have their number.
const NUMBERED = 16;

/** @param {Question} _question @param {number[]} guess */
export function placesOutcome(_question, guess) {
  return guess[0] ?? -1;
}

/** @param {Prediction} prediction */
export function drawPlaces(prediction) {
  const {opening, truth, options} = prediction.question;
  const places = /** @type {Places} */ (opening);
  const list = element("ul", {"aria-label": places.label, class: "av-places"});
  list.style.backgroundImage = `url("${truth ? truth.opening.image : places.image}")`;
  const items = options.map((_, at) => makePlace(prediction, places, at));
  list.append(...items);
  const buttons = items.flatMap((item) => [...item.querySelectorAll("button")]);
  const [first] = buttons;
  for (const button of buttons) button.tabIndex = button === first ? 0 : -1;
  list.addEventListener("keydown", (event) => {
    const [down, across] = arrowStep(event.key) ?? [0, 0];
    const at = items.findIndex((item) => item.contains(/** @type {Node} */ (event.target)));
    const column = at % places.across;
    if ((!down && !across) || column + across < 0 || column + across >= places.across) return;
    event.preventDefault();
    const next = items[Math.min(at + across + down * places.across, items.length - 1)]?.querySelector("button");
    if (next) focusOne(buttons, next);
  });
  if (!truth) {
    for (const [at, button] of buttons.entries())
      button.addEventListener("click", () => {
        prediction.choose(String(at));
        markPlace(items, at);
      });
    if (prediction.guess !== null) markPlace(items, Number(prediction.guess));
  }
  return element("div", {class: "av-gesture av-image"}, list);
}

/** @param {HTMLElement[]} items @param {number} chosen */
function markPlace(items, chosen) {
  items.forEach((item, at) => {
    item.dataset["best"] = String(at === chosen);
    item.querySelector("button")?.setAttribute("aria-pressed", String(at === chosen));
  });
}

/** @param {Prediction} prediction @param {Places} places @param {number} at */
function makePlace(prediction, places, at) {
  const {truth, options, pressed, guess} = prediction.question;
  const [name, best, mine] = [options[at] ?? "", truth?.right.includes(at) ?? false, guess === String(at)];
  const free = !truth || (pressed[at] ?? false);
  const label = element(free ? "button" : "span", {class: "av-option", title: name}, name);
  if (free) label.setAttribute("type", "button");
  if (!truth) label.setAttribute("aria-pressed", "false");
  else if (free) {
    label.setAttribute("aria-label", `${name}: ${places.press}`);
    label.addEventListener("click", () => prediction.setTriggerValue("press", at));
  }
  const number = truth && (options.length <= NUMBERED || best || mine) ? (truth.written[at] ?? "") : "";
  const item = element("li", {"data-boxed": String(at < places.boxes.length), "data-best": String(best)}, label);
  item.append(element("span", {class: "av-number"}, number));
  if (truth && mine) item.append(element("u"));
  item.dataset["blocked"] = String(truth?.opening.blocked[at] ?? false);
  const sides = /** @type {const} */ (["top", "left", "height", "width"]);
  for (const [side, share] of (places.boxes[at] ?? []).entries()) item.style[sides[side] ?? "top"] = `${100 * share}%`;
  return item;
}
