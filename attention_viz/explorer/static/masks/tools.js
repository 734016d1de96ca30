// What stands above the matrix: the masks as small pictures of themselves, the brush, and what is shown.

import {looksBack} from "./board.js";
import {BATCHED, openCells} from "./rules.js";
import {significant} from "../data/mixing.js";
import {channels, pixel, rgb} from "../data/scale.js";
import {element, fitCanvas} from "../parts/element.js";
import {cellImage, ruleCells} from "../parts/plot.js";

/** @import {Ground, Shown} from "./board.js"
 * @import {Brush, Cells, MaskChoice} from "./rules.js"
 * @import {Colours} from "../parts/style.js" */

export const PRESETS = ["none", "causal", "window", "prefix", "padding", "both", "drawn"];
const PICTURE = 36;
// What a cell is to a mask: taken away, open, or blocked by the model itself.
const [TAKEN, OPEN, BLOCKED] = [0, 1, 2];
const SKETCHED = 6;

/** @type {Record<string, string>} */
const MEANINGS = {
  none: "adds nothing to the model's own mask",
  causal: "no token looks ahead",
  window: "each token sees only tokens closer than the window size",
  prefix: "all tokens see the first ones; after those, no token looks ahead",
  padding: "blocks the padding of the shorter of two sentences",
  both: "padding and causal together",
  drawn: "the cells that you painted",
};

/** The buttons of the masks, each with its picture. @param {(mask: string) => void} choose */
export function createPresets(choose) {
  const buttons = PRESETS.map((mask) => {
    const picture = element("canvas", {"aria-hidden": "true"});
    const attributes = {type: "button", class: "av-preset", "data-mask": mask, title: MEANINGS[mask]};
    return element("button", {...attributes, onclick: () => choose(mask)}, picture, element("span", {}, mask));
  });
  const node = element("div", {class: "av-presets", role: "group", "aria-label": "Masks"}, ...buttons);
  return {node, buttons};
}

/** Draw each mask as it would be here: open cells dark, those that it takes away pale, those that the model blocks by
 * itself left out. Two sentences are a sketch until they are chosen. A mask that takes nothing away here says so.
 * @param {HTMLButtonElement[]} buttons @param {Ground} ground @param {MaskChoice} choice
 * @param {{added: Cells, drawn: Cells | null}} cells
 * @param {Pick<Colours, "accent" | "line" | "background">} colours */
export function drawPresets(buttons, ground, choice, {added, drawn}, colours) {
  const square = ground.rows === ground.columns;
  for (const button of buttons) {
    const mask = button.dataset["mask"] ?? "";
    button.setAttribute("aria-pressed", String(mask === choice.mask));
    const canvas = /** @type {HTMLCanvasElement} */ (button.firstElementChild);
    const chosen = mask === choice.mask || (mask === "drawn" && !drawn) ? added : drawn;
    const open = mask === "drawn" || mask === choice.mask ? chosen : openCells(mask, ground.rows, choice);
    if (!square) drawPicture(canvas, 1, Uint8Array.of(mask === "none" ? OPEN : TAKEN), colours);
    else if (open) drawPicture(canvas, ground.rows, kindsOf(open, ground.own), colours);
    else if (BATCHED.includes(mask)) drawPicture(canvas, SKETCHED, sketch(mask, looksBack(ground)), colours);
    const idle = square && isIdle(mask, open, ground);
    button.classList.toggle("av-idle", idle);
    const why =
      mask === "both" ? "no more than padding, as the model never looks ahead" : "the model already blocks these cells";
    button.title = idle ? `${MEANINGS[mask]}; ${why}` : MEANINGS[mask];
  }
}

/** Whether a mask takes nothing away here, or nothing that another one doesn't.
 * @param {string} mask @param {Cells | null} open @param {Ground} ground */
function isIdle(mask, open, ground) {
  if (mask === "both") return looksBack(ground);
  return open !== null && mask !== "none" && mask !== "drawn" && takesNothing(open, ground.own);
}

/** What each cell is to a mask. @param {Cells} open @param {Cells} own */
function kindsOf(open, own) {
  return open.map((cell, at) => (own[at] ? (cell ? OPEN : TAKEN) : BLOCKED));
}

/** @param {Cells} open @param {Cells} own */
function takesNothing(open, own) {
  return open.every((cell, at) => cell || !own[at]);
}

/** Six tokens, of which two fill up. @param {string} mask @param {boolean} back  whether the model looks back only */
function sketch(mask, back) {
  const cells = (/** @type {(query: number, key: number) => boolean} */ rule) =>
    Uint8Array.from({length: SKETCHED ** 2}, (_, at) => Number(rule(Math.floor(at / SKETCHED), at % SKETCHED)));
  const own = cells((query, key) => !back || key <= query);
  return kindsOf(
    cells((query, key) => key < 4 && (mask === "padding" || key <= query)),
    own,
  );
}

/** @param {HTMLCanvasElement} canvas @param {number} count @param {Cells} kinds
 * @param {Pick<Colours, "accent" | "line" | "background">} colours */
function drawPicture(canvas, count, kinds, colours) {
  const context = fitCanvas(canvas, PICTURE, PICTURE);
  const frame = {left: 0, top: 0, width: PICTURE, height: PICTURE, down: count, across: count};
  const shown = [colours.line, colours.accent, colours.background].map((colour) => pixel(channels(colour)));
  // Smoothed where many cells are under a pixel, as else some would be left out.
  context.imageSmoothingEnabled = PICTURE < count;
  context.drawImage(
    cellImage(frame, (at) => shown[kinds[at]]),
    0,
    0,
    PICTURE,
    PICTURE,
  );
  if (PICTURE > 3 * count) ruleCells(context, frame, colours.background, 1);
}

/** Buttons of which one is pressed.
 * @template {string} T @param {string} label @param {Record<T, string>} options @param {(value: T) => void} choose */
export function createSwitch(label, options, choose) {
  const values = /** @type {T[]} */ (Object.keys(options));
  const buttons = values.map((value) =>
    element("button", {type: "button", onclick: () => choose(value)}, options[value]),
  );
  const node = element("div", {class: "av-switch", role: "group", "aria-label": label}, ...buttons);
  return {
    node,
    /** @param {T | null} value */
    show(value) {
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(values[at] === value)));
    },
    /** @param {boolean} off */
    disable(off) {
      for (const button of buttons) button.disabled = off;
    },
  };
}

/** A number with a button on either side. @param {(by: number) => void} step */
export function createStepper(step) {
  const value = element("span", {class: "av-stepped", "aria-live": "polite"});
  const buttons = [
    element("button", {type: "button", "aria-label": "Less", onclick: () => step(-1)}, "\u2212"),
    element("button", {type: "button", "aria-label": "More", onclick: () => step(1)}, "+"),
  ];
  const means = element("span", {class: "av-quiet"});
  const line = element("span", {class: "av-stepper-line"}, buttons[0], value, buttons[1]);
  const node = element("div", {class: "av-stepper", role: "group"}, line, means);
  return {
    node,
    /** @param {string} label @param {number | null} number @param {string} words */
    show(label, number, words) {
      node.hidden = number === null;
      node.setAttribute("aria-label", label);
      value.textContent = String(number);
      means.textContent = words;
    },
  };
}

/** What the colours mean, and of which head.
 * @param {HTMLElement} place
 * @param {{ramp: number[][], end: number, signed: boolean, beyond: boolean, words: string, hatched: boolean,
 *   mixed: boolean}} legend */
export function writeLegend(place, {ramp, end, signed, beyond, words, hatched, mixed}) {
  const most = mixed ? significant(end) : String(end);
  const bar = element("span", {class: "av-legend-bar", "aria-hidden": "true"});
  bar.style.background = `linear-gradient(to right, ${ramp.map(rgb).join(", ")})`;
  place.replaceChildren(
    element("span", {class: "av-legend-words"}, words),
    element(
      "span",
      {class: "av-legend-scale"},
      signed ? `${beyond ? "\u2264 " : ""}\u2212${most}` : "0",
      bar,
      `${beyond ? "\u2265 " : ""}${signed ? "+" : ""}${most}${mixed ? " (log)" : ""}`,
    ),
    ...(hatched ? [element("span", {class: "av-key-entry"}, element("span", {class: "av-hatch"}), "blocked")] : []),
  );
}

/** @type {Record<Brush, string>} */
export const BRUSHES = {cell: "cell", row: "row", column: "column"};
/** @type {Record<Shown, string>} */
export const SHOWN = {before: "Before", after: "After", difference: "Difference"};
