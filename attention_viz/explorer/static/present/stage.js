// One slide in a room of any size: the claim, its picture, and where the numbers are from.

import {element} from "../parts/element.js";
import {readStyle} from "../parts/style.js";
import {LEAST_ROW, drawBars} from "./bars.js";
import {drawFigure} from "./figure.js";
import {formulaOf} from "./formula.js";
import {drawGiven} from "./given.js";
import {drawLine} from "./line.js";
import {NARROW, stageOf} from "./room.js";
import {drawShown} from "./shown.js";

/** @import {Row, Slide, Words} from "./slides.js" */

/** What slides name by a number: images and figures, and the address of the script that draws figures.
 * @typedef {{pictures: string[], figures: string[], plotly: string}} Files */

/** @type {Record<string, string>} */
const ROLES = {query: "av-q", key: "av-k", next: "av-next", number: "av-n", small: "av-small"};
// Letters from which on a claim is written smaller.
const [LONG, VERY_LONG] = [76, 190];
// Of the width, what a table may take that has something beside it.
const WIDE = 0.55;
// As high as two lines of where the numbers are from.
const SOURCE = 80;
// Letters that a formula in a sentence is about as wide as.
const FORMULA = 4;
// What a table beside a picture leaves to that.
const LEFT = 0.38;

/** Show a slide in place of what the stage showed.
 * @param {HTMLElement} root  covers the room
 * @param {HTMLElement} stage @param {Slide} slide
 * @param {{step: number, vote: number | null, files: Files}} shown */
export function showSlide(root, stage, slide, {step, vote, files}) {
  const {scale, width, height} = stageOf(root.clientWidth, root.clientHeight);
  // First of all: measuring below lays the slide out, and what is laid out as asked would fade into its answer.
  stage.dataset["step"] = String(step);
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
  for (const [own, words] of [slide.ask, slide.tell].entries()) {
    const letters = lettersOf(words);
    claim.children[own]?.classList.toggle("av-long", letters > LONG);
    claim.children[own]?.classList.toggle("av-very-long", letters > VERY_LONG);
  }
  const beside = element("div", {class: "av-beside"});
  const place = element("div", {class: "av-picture"});
  const file = files.pictures[slide.shown?.seen ?? -1];
  const figure = files.figures[slide.figure ?? -1];
  if (slide.given.length) beside.append(drawGiven(slide.given, slide.shown !== null));
  if (slide.formulas.length) place.append(drawFormulas(slide.formulas));
  beside.append(place);
  const section = element("section", {class: "av-slide", "aria-roledescription": "slide"});
  // Where the question names the word of the marked bar, that is marked from the beginning; else it is the answer.
  section.toggleAttribute("data-named", named(slide.ask, slide.picture));
  const source = element("p", {class: "av-source"}, slide.source);
  section.append(claim, beside, source);
  stage.replaceChildren(section);
  // The keys, as long as they are told, lie over its second line, which it keeps free if it needs only the first.
  if (width >= NARROW) source.style.minHeight = `${SOURCE}px`;
  // Beside a wide table there is no room for what there is to choose from.
  const tables = beside.querySelector(".av-given");
  const below = slide.picture !== null || slide.shown === null;
  const wider = below && tables !== null && tables.scrollWidth > WIDE * beside.clientWidth;
  beside.classList.toggle("av-below", wider);
  if (slide.shown && file) {
    const wide = width < NARROW ? 1 : slide.picture ? WIDE : LEFT;
    const high = beside.clientHeight * (width < NARROW ? 1 - WIDE : 1);
    beside.prepend(drawShown(slide.shown, file, {width: wide * beside.clientWidth, height: high}));
  }
  if (figure) {
    const name = slide.tell.map(([text]) => text).join("");
    place.append(drawFigure(figure, files.plotly, {width: place.clientWidth, height: place.clientHeight, name}));
  }
  if (slide.picture) {
    if (wider) makeRoom(place, tables, claim, slide.picture.tokens.length + slide.picture.cuts.length);
    const {colours} = readStyle(root);
    const mono = getComputedStyle(root).getPropertyValue("--av-mono").trim();
    const room = {width: place.clientWidth, height: place.clientHeight, colours, mono, vote};
    const onOneLine = slide.picture.form === "line" && width >= NARROW;
    place.append((onOneLine ? drawLine : drawBars)(slide.picture, room));
  }
  showStep(stage, step);
}

/** @param {string[]} formulas */
function drawFormulas(formulas) {
  return element("div", {class: "av-formulas av-told"}, ...formulas.map((one) => element("div", {}, formulaOf(one))));
}

/** Where bars below a table would run into each other, the table is written smaller, and then the sentence.
 * @param {HTMLElement} picture  of the bars
 * @param {Element} tables @param {HTMLElement} claim
 * @param {number} count  of bars */
function makeRoom(picture, tables, claim, count) {
  const narrow = () => picture.clientHeight < LEAST_ROW * count;
  if (narrow()) tables.classList.add("av-dense");
  if (narrow()) for (const words of claim.children) words.classList.add("av-very-long");
}

/** Ask, or answer: nothing moves but what is revealed. @param {HTMLElement} stage @param {number} step */
export function showStep(stage, step) {
  stage.dataset["step"] = String(step);
  stage.querySelector(".av-ask")?.toggleAttribute("hidden", false);
  for (const [own, name] of [".av-ask", ".av-tell"].entries())
    stage.querySelector(name)?.setAttribute("aria-hidden", String(own !== step));
}

/** Letters of a claim, without what stands smaller below it. @param {Words[]} words */
function lettersOf(words) {
  const counted = words.filter(([, role]) => role !== "small");
  return counted.reduce((sum, [text, role]) => sum + (role === "formula" ? FORMULA : text.length), 0);
}

/** @param {Words[]} words @param {Row | null} picture */
function named(words, picture) {
  const key = picture?.key ?? -1;
  const marked = (picture?.asked[key] ?? picture?.tokens[key])?.replace("\u2026", "");
  return marked !== undefined && words.some(([text, role]) => role === "key" && text.includes(marked));
}

/** @param {Words[]} words @returns {(Node | string)[]} */
function sentence(words) {
  // A word from right to left is set apart inside its quotes, which stand as the sentence does.
  const whole = (/** @type {string} */ text) => text.replace(/\b(layer|head|patch) (?=\d)/giu, "$1\u00a0");
  return words.map(([text, role]) => {
    if (role === "formula") return formulaOf(text);
    return ROLES[role] ? element("bdi", {class: ROLES[role], dir: "ltr"}, whole(text)) : whole(text);
  });
}
