// Slides over the whole page: one claim each, asked and answered; from one to the next nothing is asked of the server.
//
// The page's button "Present" opens them, and as long as they are not there yet the page itself hears of its press.

import {element} from "../parts/element.js";
import {mountComponent} from "../hosts/component.js";
import {themeOf} from "../hosts/hosting.js";
import {actOf, moved, pastEnd, readPlace, slidesOrNone, written} from "./slides.js";
import {showSlide, showStep} from "./stage.js";

/** @import {Act, Place, Slide} from "./slides.js"
 * @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js" */

/** What all slides of a visit have in common: those of this page, and whether they are shown.
 * @typedef {object} Talk
 * @property {HTMLElement | null} parent  where the slides of this page are
 * @property {Slide[]} slides
 * @property {string[]} pictures  what slides show, each as an address that holds it
 * @property {string[]} figures  lessons' figures, as Plotly's JSON
 * @property {string} plotly  the address of the script that draws them
 * @property {string} deck  which of several sets of slides that follow each other; empty where there is one
 * @property {[boolean, boolean]} beyond  whether there is one before, and one after
 * @property {((by: number) => void) | null} turn  asks the page for it
 * @property {number} turned  where that was asked: 1 the one after, −1 the one before, 0 not
 * @property {Place} place
 * @property {Map<number, number>} votes  by slide what the class said
 * @property {boolean} open
 * @property {boolean} full
 * @property {number} asked  how often the page was asked for slides that weren't there yet
 * @property {number} idle
 * @property {number} hints */

const BUTTON = ".st-key-present button";
const [HINTS, STILL, GONE] = [4000, 2000, 400];
/** @type {Talk} */
const talk = {
  parent: null,
  slides: slidesOrNone([]),
  pictures: [],
  figures: [],
  plotly: "",
  deck: "",
  beyond: [false, false],
  turn: null,
  turned: 0,
  place: {at: 0, step: 0},
  votes: new Map(),
  open: false,
  full: false,
  asked: 0,
  idle: 0,
  hints: 0,
};
let listens = false;

/** What the page gives.
 * @typedef {{slides: Slide[], pictures: string[], figures: string[], plotly?: string, asked: number, deck: string,
 *   beyond: [boolean, boolean]}} Handed */

/** @param {Mounting} mounting */
export default function presentComponent(mounting) {
  return mountComponent(mounting, {
    ...{selector: "dialog.av-present", create: (base) => base, load: take, same: () => false},
    leave: ({parentElement}) => void setTimeout(forget, GONE, parentElement),
  });
}

/** Take the page's slides. @param {Mounted} component @param {Handed} handed */
function take({parentElement, setTriggerValue}, handed) {
  const slides = slidesOrNone(handed.slides);
  const same = talk.parent === parentElement && JSON.stringify(slides) === JSON.stringify(talk.slides);
  const [fresh, wanted] = [talk.parent !== parentElement, handed.asked > talk.asked];
  const begins = talk.open && handed.deck !== talk.deck;
  Object.assign(talk, {...handed, parent: parentElement, slides});
  talk.turn = (/** @type {number} */ by) => setTriggerValue("turn", by);
  if (!same) talk.votes.clear();
  if (!listens) listenToPage();
  const asked = readPlace(new URLSearchParams(location.search).get("slide"), slides.length);
  if (begins) showDeck();
  else if (talk.open && !same) show(readPlace(written(talk.place), slides.length) ?? {at: 0, step: 0});
  else if (!talk.open && ((fresh && asked) || wanted)) open(asked ?? {at: 0, step: 0});
}

/** Other slides have come: from their first, or where one went back, from their last. */
function showDeck() {
  const place = talk.turned < 0 ? {at: talk.slides.length - 1, step: 1} : {at: 0, step: 0};
  talk.turned = 0;
  dialogHere()?.classList.remove("av-turning");
  show(place);
}

/** The slides of a page that is gone are shown no more. @param {HTMLElement} parent */
function forget(parent) {
  if (talk.parent !== parent || parent.isConnected) return;
  if (talk.open) leave();
  Object.assign(talk, {parent: null, slides: slidesOrNone([])});
}

function listenToPage() {
  listens = true;
  // On the way down, so that the server isn't asked for what is here.
  document.addEventListener(
    "click",
    (event) => {
      const pressed = event.target instanceof Element && event.target.closest(BUTTON);
      if (!pressed || !talk.parent?.isConnected) return;
      event.stopPropagation();
      event.preventDefault();
      open({at: 0, step: 0});
    },
    {capture: true},
  );
  document.addEventListener("fullscreenchange", () => {
    const full = document.fullscreenElement !== null;
    if (talk.open && talk.full && !full) leave();
    // What is full screen comes before what was shown until then.
    else if (talk.open && full) raise();
    talk.full = full && talk.open;
  });
  window.addEventListener("resize", () => {
    if (talk.open) show(talk.place);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    setTimeout(() => {
      if (talk.open) show(talk.place);
    }, STILL / 10),
  );
}

function dialogHere() {
  return /** @type {HTMLDialogElement | null} */ (talk.parent?.querySelector("dialog.av-present") ?? null);
}

/** @param {Place} place */
function open(place) {
  const dialog = dialogHere();
  if (!dialog) return;
  talk.open = true;
  if (!dialog.querySelector(".av-stage")) fill(dialog);
  raise();
  show(place);
  hint(true);
  if (navigator.userActivation?.isActive) document.documentElement.requestFullscreen?.().catch(() => undefined);
}

function raise() {
  const dialog = dialogHere();
  if (!dialog) return;
  if (dialog.open) dialog.close();
  dialog.showModal();
  dialog.focus();
}

function leave() {
  Object.assign(talk, {open: false, turned: 0});
  const dialog = dialogHere();
  if (dialog?.open) dialog.close();
  if (document.fullscreenElement) document.exitFullscreen().catch(() => undefined);
  keepPlace("");
  // On a narrow page a hidden one stands before the one that is seen.
  const seen = [...document.querySelectorAll(BUTTON)].find((one) => one.getClientRects().length > 0);
  if (seen instanceof HTMLElement) seen.focus();
}

/** @param {HTMLDialogElement} dialog */
function fill(dialog) {
  const gone = element("button", {type: "button", class: "av-leave", onclick: leave}, "Leave");
  const words = element("span");
  const keys = element("p", {class: "av-keys"}, words);
  for (const [key, does] of [
    ["← →", "step"],
    ["1–9", "slide"],
    ["Shift", "hold: dot"],
    ["B", "black"],
    ["?", "keys"],
    ["Esc", "leave"],
  ])
    words.append(element("b", {}, key), ` ${does} \u00a0 `);
  const [stage, dot] = [element("main", {class: "av-stage", "aria-live": "polite"}), element("div", {class: "av-dot"})];
  const turning = element("p", {class: "av-turning-said", role: "status"}, "Making the next slides …");
  dialog.append(stage, turning, keys, gone, dot, element("div", {class: "av-black"}));
  dialog.addEventListener("keydown", (event) => press(dialog, event));
  dialog.addEventListener("keyup", (event) => event.key === "Shift" && dialog.classList.remove("av-pointing"));
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });
  dialog.addEventListener("click", (event) => choose(dialog, event));
  dialog.addEventListener("pointermove", ({clientX, clientY}) => {
    Object.assign(dot.style, {left: `${clientX}px`, top: `${clientY}px`});
    dialog.classList.remove("av-still");
    clearTimeout(talk.idle);
    talk.idle = setTimeout(() => dialog.classList.add("av-still"), STILL);
  });
  window.addEventListener("blur", () => dialog.classList.remove("av-pointing"));
}

/** @param {HTMLDialogElement} dialog @param {KeyboardEvent} event */
function press(dialog, event) {
  // The page has keys of its own.
  event.stopPropagation();
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Shift") dialog.classList.add("av-pointing");
  const target = event.composedPath()[0];
  const onWord = target instanceof Element ? target.closest("[data-vote]") : null;
  if (event.key === "Enter") {
    if (target instanceof Element && target.closest(".av-leave")) return;
    event.preventDefault();
    if (onWord) vote(Number(onWord.getAttribute("data-vote")));
    else go("on");
    return;
  }
  const act = actOf(event.key);
  if (act === null) return;
  event.preventDefault();
  if (act === "leave") leave();
  else if (act === "blank") dialog.classList.toggle("av-blank");
  else if (act === "help") hint(!dialog.classList.contains("av-help"), true);
  else go(act);
}

/** To another step or slide; past the end the page is asked for the slides that follow, once. @param {Act} act */
function go(act) {
  const by = pastEnd(talk.place, act, talk.slides.length);
  if (by === 0) show(moved(talk.place, act, talk.slides.length));
  else if (talk.turned === 0 && talk.beyond[by > 0 ? 1 : 0]) {
    talk.turned = by;
    dialogHere()?.classList.add("av-turning");
    talk.turn?.(by);
  }
}

/** A word is what the class says; anywhere else goes on, or back on the left.
 * @param {HTMLDialogElement} dialog @param {MouseEvent} event */
function choose(dialog, event) {
  const target = event.composedPath()[0];
  if (!(target instanceof Element) || target.closest(".av-leave")) return;
  const word = target.closest("[data-vote]");
  if (word && talk.place.step === 0) vote(Number(word.getAttribute("data-vote")));
  else go(event.clientX < dialog.clientWidth / 3 ? "back" : "on");
  dialog.focus();
}

/** @param {number} word */
function vote(word) {
  if (talk.place.step === 1) return;
  if (talk.votes.get(talk.place.at) === word) talk.votes.delete(talk.place.at);
  else talk.votes.set(talk.place.at, word);
  show(talk.place, true);
}

/** @param {Place} place @param {boolean} [afresh] */
function show(place, afresh = false) {
  const dialog = dialogHere();
  const stage = /** @type {HTMLElement | null} */ (dialog?.querySelector(".av-stage") ?? null);
  if (!dialog || !stage) return;
  const theme = themeOf(dialog);
  const size = `${dialog.clientWidth} ${dialog.clientHeight} ${theme}`;
  dialog.classList.remove("av-blank");
  const same = !afresh && stage.dataset["at"] === String(place.at) && stage.dataset["size"] === size;
  const said = talk.votes.get(place.at) ?? null;
  const current = stage.dataset["words"] === JSON.stringify(talk.slides[place.at]);
  talk.place = place;
  dialog.dataset["theme"] = theme;
  if (same && current) showStep(stage, place.step);
  else showSlide(dialog, stage, talk.slides[place.at], {step: place.step, vote: said, files: talk});
  Object.assign(stage.dataset, {at: String(place.at), size, words: JSON.stringify(talk.slides[place.at])});
  keepPlace(written(place));
}

/** The keys, for a moment or until they are hidden. @param {boolean} seen @param {boolean} [stays] */
function hint(seen, stays = false) {
  const dialog = dialogHere();
  clearTimeout(talk.hints);
  dialog?.classList.toggle("av-help", seen);
  if (seen && !stays) talk.hints = setTimeout(() => dialog?.classList.remove("av-help"), HINTS);
}

/** The address keeps slide and step; the server isn't asked. @param {string} place */
function keepPlace(place) {
  const address = new URL(location.href);
  if (place) address.searchParams.set("slide", place);
  else address.searchParams.delete("slide");
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}
