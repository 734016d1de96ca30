// One slide in a room of any size: the claim, its picture, and where the numbers are from.

import {element} from "../parts/element.js";
import {readStyle} from "../parts/style.js";
import {drawBars} from "./bars.js";
import {drawLine} from "./line.js";
import {NARROW, stageOf} from "./room.js";

/**
 * @import {Slide, Words} from "./slides.js"
 */

/** @type {Record<string, string>} */
const ROLES = {query: "av-q", key: "av-k", next: "av-next", number: "av-n"};

/**
 * Show a slide in place of what the stage showed.
 * @param {HTMLElement} root  covers the room
 * @param {HTMLElement} stage
 * @param {Slide} slide
 * @param {{step: number, vote: number | null}} shown
 */
export function showSlide(root, stage, slide, {step, vote}) {
  const {scale, width, height} = stageOf(root.clientWidth, root.clientHeight);
  Object.assign(stage.style, {width: `${width}px`, height: `${height}px`, transform: `scale(${scale})`});
  stage.dataset["narrow"] = String(width < NARROW);
  stage.dataset["low"] = String(height < 800);
  const hidden = (/** @type {number} */ own) => (own === step ? null : "true");
  const claim = element(
    "h1",
    {class: "av-said-large"},
    element("span", {class: "av-ask", "aria-hidden": hidden(0)}, ...sentence(slide.ask)),
    element("span", {class: "av-tell", "aria-hidden": hidden(1)}, ...sentence(slide.tell)),
  );
  const place = element("div", {class: "av-picture"});
  const section = element("section", {class: "av-slide", "aria-roledescription": "slide"});
  // Where the question names the word that is looked at, its bar is marked from the beginning; else it is the answer.
  section.toggleAttribute("data-named", named(slide.ask));
  section.append(claim, place, element("p", {class: "av-source"}, slide.source));
  stage.replaceChildren(section);
  if (slide.picture) {
    const {colours} = readStyle(root);
    const mono = getComputedStyle(root).getPropertyValue("--av-mono").trim();
    const room = {width: place.clientWidth, height: place.clientHeight, colours, mono, vote};
    const onOneLine = slide.picture.form === "line" && width >= NARROW;
    place.append((onOneLine ? drawLine : drawBars)(slide.picture, room));
  }
  showStep(stage, step);
}

/**
 * Ask, or answer: nothing moves but what is revealed.
 * @param {HTMLElement} stage
 * @param {number} step
 */
export function showStep(stage, step) {
  stage.dataset["step"] = String(step);
  stage.querySelector(".av-ask")?.toggleAttribute("hidden", false);
  for (const [own, name] of [".av-ask", ".av-tell"].entries())
    stage.querySelector(name)?.setAttribute("aria-hidden", String(own !== step));
}

/** @param {Words[]} words */
function named(words) {
  return words.some(([, role]) => role === "key");
}

/**
 * @param {Words[]} words
 * @returns {(Node | string)[]}
 */
function sentence(words) {
  return words.map(([text, role]) => (ROLES[role] ? element("bdi", {class: ROLES[role]}, text) : text));
}
