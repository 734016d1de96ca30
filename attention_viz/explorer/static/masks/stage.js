// The parts of the page of masks, and how they are drawn from what is known.

import {layerPlace} from "../heads/numbers.js";
import {countCut, isAtHand, keepsRow, looksBack, matricesOf, ownOutputs} from "./board.js";
import {leaveSheet} from "./leaving.js";
import {drawSheet, drawnNumbers, laySheet} from "./sheet.js";
import {drawHeads, writeOutputs, writeWhole} from "./sides.js";
import {claimOf, cutOf, pointedClaim} from "./telling.js";
import {drawPresets, writeLegend} from "./tools.js";
import {BATCHED, readsTheSame} from "./rules.js";
import {axesOf} from "../heads/cells.js";
import {element} from "../parts/element.js";
import {readStyle} from "../parts/style.js";

/** @import {BoardMessage, Ground, Matrices, Run, Shown} from "./board.js"
 * @import {Brush, Cells, MaskChoice} from "./rules.js"
 * @import {Cell, Sheet} from "./sheet.js"
 * @import {HeadCell, HeadGrid, HeadPlace} from "../heads/cells.js"
 * @import {createPresets, createStepper, createSwitch} from "./tools.js"
 * @import {Colours} from "../parts/style.js"
 * @import {Tooltip} from "../parts/tooltip.js"
 * @import {Mounted} from "../hosts/component.js" */

/**
 * The mask as the reader has it, what the page made of it, and what is pointed at.
 * @typedef {Mounted & StageParts} Stage
 *
 * @typedef {object} StageParts
 * @property {Record<"claim" | "legend" | "outputs" | "whole" | "outputsTitle" | "outputsNote" | "elsewhere" | "headsNote" | "headsTitle" |
 *   "wholeTitle" | "scopeNote" | "live" | "locked" | "lockedWords" | "hint" | "application", HTMLElement>} parts
 * @property {ReturnType<typeof createPresets>} presets
 * @property {ReturnType<typeof createStepper>} stepper
 * @property {ReturnType<typeof createStepper>} sizer
 * @property {{brush: ReturnType<typeof createSwitch>, shown: ReturnType<typeof createSwitch>,
 *   scope: ReturnType<typeof createSwitch>}} switches
 * @property {Sheet} sheet
 * @property {Tooltip} tooltip
 * @property {HeadGrid<HeadCell>} heads
 * @property {string} id  of the bytes that are drawn
 * @property {Ground | null} ground
 * @property {BoardMessage | null} message
 * @property {MaskChoice} choice
 * @property {Cells} added  open with the mask that is put on, whatever the model blocks
 * @property {Cells | null} drawn  what was last painted by hand
 * @property {Run | null} run  with the mask that is chosen; null while that is being run
 * @property {Run | null} last  the last that there was
 * @property {Shown} shown
 * @property {Brush} brush
 * @property {number} size  of the brush, in cells
 * @property {HeadPlace | null} peek
 * @property {Cell | null} pair
 * @property {Cell | null} over
 * @property {number | null} overRow
 * @property {Cell | null} cursor
 * @property {boolean} painting  whether a stroke isn't at its end
 * @property {Cell | null} painted  where the last stroke ended, until the pointer goes on: the sentence is about the mask
 * @property {string} window  its size when it was last drawn
 */

export const PAINT_HINT = "drag to block or open";
const WIDE = 760;
const RUNNING = "running the model \u2026";
// What stands above and below the matrix on the first screen, in pixels.
const AROUND = 250;
const LEAST_ROOM = 330;
const MOST_ROOM = 860;
// What stands beside the bars of the outputs.
const BESIDE = {whole: 346, next: 436};
const LEAST_BARS = 60;

/** @type {Record<string, (number: number, back: boolean) => string>} */
export const NUMBER_WORDS = {
  window: (number, back) =>
    number <= 1 ? "only itself" : `itself and ${number - 1} ${back ? "before it" : "on each side"}`,
  prefix: (number) => `${number} open to all`,
};

/** Draw everything anew. @param {Stage} stage */
export function drawStage(stage) {
  const {ground, message} = stage;
  if (!ground || !message) return;
  // Read once: what asks the style sheet has it computed anew.
  const {colours} = readStyle(stage.root);
  drawMatrix(stage, colours);
  drawTools(stage, ground, message, colours);
  drawSides(stage, ground, colours);
  stage.root.dataset["drawn"] = "";
}

/** Draw what follows the pointer: the matrix, and the sentence above it. @param {Stage} stage @param {Colours} colours */
function drawMatrix(stage, colours) {
  const {ground, message} = stage;
  if (!ground || !message) return;
  const matrices = matricesOf(ground, stage);
  const mine = stage.peek ? matricesOf(ground, {...stage, peek: null}) : matrices;
  const [none, cell] = [
    stage.choice.mask === "none",
    stage.painting || stage.peek ? null : (stage.cursor ?? (stage.painted ? null : stage.over)),
  ];
  const chosen = chosenPair(stage);
  const said = cell
    ? pointedClaim(ground, mine, stage.run, none, cell)
    : claimOf(ground, mine, stage.run, none, chosen);
  stage.parts.claim.replaceChildren(...said);
  laySheet(stage.sheet, ground, roomOf() - stage.parts.locked.offsetHeight);
  const told = none ? null : (chosen ?? cutOf(ground, mine));
  const marks = {pair: stage.peek ? null : (told ?? stage.pair), row: stage.overRow, cursor: stage.cursor};
  leaveSheet(stage.sheet, matrices);
  drawSheet(stage.sheet, matrices, shownOf(stage), colours, marks);
  const {end, signed, beyond} = drawnNumbers(matrices, shownOf(stage));
  writeLegend(stage.parts.legend, {
    ...{end, signed, beyond, ramp: signed ? colours.differences : colours.ramp},
    words: legendWords(stage, ground, matrices),
    mixed: matrices.mixed !== undefined,
    hatched: matrices.own.includes(0) || countCut(matrices) > 0,
  });
}

/** Draw what follows the pointer, and a stroke that isn't over: the matrix, and this head's own output.
 * @param {Stage} stage */
export function drawPointed(stage) {
  drawMatrix(stage, readStyle(stage.root).colours);
  if (stage.ground && stage.message && !stage.run) drawOutputs(stage, stage.ground);
}

/** The link that the sentence is about, where one was chosen: a press that paints chooses none for it, and a picture
 * shows one in any case.
 * @param {Pick<Stage, "choice" | "pair" | "message" | "ground">} stage */
export function chosenPair({choice, pair, message, ground}) {
  const free = message?.query == null && !ground?.header.queries.placed;
  return choice.mask === "drawn" || free ? null : pair;
}

/** How high the matrix may be, in pixels. */
function roomOf() {
  return Math.max(LEAST_ROOM, Math.min(MOST_ROOM, window.innerHeight - AROUND));
}

/** Which weights the matrix shows: without a mask there is no difference to be seen.
 * @param {Pick<Stage, "choice" | "shown">} stage @returns {Shown} */
function shownOf({choice, shown}) {
  return choice.mask === "none" ? "before" : shown;
}

/** Which head the matrix is, and what its numbers are.
 * @param {Stage} stage @param {Ground} ground @param {Matrices} matrices */
function legendWords(stage, {header, columns}, matrices) {
  const {peek, run, choice} = stage;
  const {layer, head} = peek ?? header;
  const own = header.mixed === "arrived" ? "what arrives in all channels" : `head ${head}`;
  const kind = header.kind ? ` \u00b7 ${header.kind}` : "";
  const where = `layer ${header.layers[layerPlace(header.layers, layer)].label}${kind}, ${own}`;
  if (shownOf(stage) === "before") return where;
  if (!matrices.after) return `${where}: before; running the model \u2026`;
  if (!run && !readsTheSame(choice, layer, header.layers)) return `${where}: running the model \u2026`;
  const empty = shownOf(stage) === "difference" && keepsRow(matrices, columns);
  return empty ? `${where}; empty rows are unchanged` : where;
}

/** @param {Stage} stage @param {Ground} ground @param {BoardMessage} message @param {Colours} colours */
function drawTools({presets, stepper, sizer, switches, choice, ...stage}, ground, {locked, elsewhere}, colours) {
  const {added, drawn, parts, shown, brush, size, sheet} = stage;
  drawPresets(presets.buttons, ground, choice, {added, drawn}, colours);
  for (const button of presets.buttons) button.disabled = locked !== "";
  const {mask} = choice;
  const number = mask === "window" ? choice.window : mask === "prefix" ? choice.prefix : null;
  stepper.show(mask, number, number === null ? "" : NUMBER_WORDS[mask](number, looksBack(ground)));
  sizer.show("Brush size", Math.min(sheet.frame.cell.width, sheet.frame.cell.height) < 12 ? size : null, "cells");
  switches.brush.show(brush);
  switches.shown.show(shownOf({choice, shown}));
  switches.shown.disable(choice.mask === "none");
  const scope = scopeOf(choice, ground);
  switches.scope.show(scope);
  parts.scopeNote.textContent = scope === null ? scopeWords(choice) : "";
  for (const one of [switches.brush, switches.scope]) one.disable(locked !== "");
  parts.lockedWords.textContent = locked;
  parts.locked.hidden = locked === "";
  parts.elsewhere.hidden = elsewhere === "";
  parts.elsewhere.textContent = `Mask the ${elsewhere}`;
  parts.hint.textContent = locked || BATCHED.includes(mask) ? "" : PAINT_HINT;
}

/** @param {MaskChoice} choice @param {Ground} ground */
function scopeOf({in_layer, in_head}, {header: {layer, head}}) {
  if (in_layer === null && in_head === null) return "all";
  if (in_layer === layer) return in_head === null ? "layer" : in_head === head ? "head" : null;
  return null;
}

/** Where a mask acts that was put on for another head than the one on the screen. @param {MaskChoice} choice */
function scopeWords({in_layer, in_head}) {
  const layer = in_layer === null ? "every layer" : `layer ${in_layer}`;
  return `${layer}, ${in_head === null ? "every head" : `head ${in_head}`}`;
}

/** What the mask did to each token's output. Until the model has run with it, what the head on the screen hands out is
 * told instead, where that is exact; where it isn't, what ran last stays, grey.
 * @param {Stage} stage @param {Ground} ground */
function drawOutputs(stage, ground) {
  const {root, parts, run, last} = stage;
  const stale = run === null;
  const own = stale ? ownOutputs(ground, matricesOf(ground, {...stage, peek: null})) : null;
  root.classList.toggle("av-stale", stale);
  parts.outputs.classList.toggle("av-own", own !== null);
  parts.outputsTitle.textContent = own ? "This head\u2019s output moved by" : "The model\u2019s output moved by";
  parts.outputsNote.textContent = stale ? RUNNING : "last layer, change ÷ norm before";
  const told = own ? {outputs: own, said: ground.header.queries.tokens} : (run ?? last);
  if (!told) return;
  const {pair} = stage;
  // Of a model with two texts, what comes out stands beside the other one.
  const kept = pair && told.said[pair.query] === ground.header.queries.tokens[pair.query] ? pair.query : null;
  writeOutputs(parts.outputs, told, root.clientWidth < WIDE ? 340 : barsRoom(run ?? last), kept);
  if (stage.overRow !== null)
    parts.outputs.querySelector(`[data-output="${stage.overRow}"]`)?.classList.add("av-marked");
}

/** How high the bars of the outputs may be, in pixels. @param {Run | null} told */
function barsRoom(told) {
  return Math.max(LEAST_BARS, roomOf() - (told?.likelier.length ? BESIDE.next : BESIDE.whole));
}

/** @param {Stage} stage @param {Ground} ground @param {{ramp: number[][]}} colours */
function drawSides(stage, ground, {ramp}) {
  drawOutputs(stage, ground);
  const {parts, run, last, heads, message} = stage;
  const told = run ?? last;
  parts.headsNote.textContent =
    run === null
      ? RUNNING
      : `% of each head\u2019s ${ground.header.mixed ? "size" : "weight"}${isAtHand(ground, {layer: -1, head: -1}) ? " \u00b7 point or click" : ""}`;
  const shown = stage.peek ?? ground.header;
  drawHeads(heads, ground, {
    heads: told?.heads ?? null,
    shown,
    ramp,
    spare: Math.max(0, barsRoom(told) - parts.outputs.offsetHeight),
  });
  parts.headsTitle.replaceChildren("Weight moved ", element("span", {class: "av-axes"}, axesOf()));
  if (!told) return;
  parts.wholeTitle.textContent = told.likelier.length ? (message?.predicts ?? "") : "Mean output, compared with before";
  writeWhole(parts.whole, told);
}

/** Build the heads' cells, where others are there now. @param {Stage} stage @param {Ground} ground */
export function takeGround(stage, ground) {
  stage.ground = ground;
  stage.peek = null;
  stage.heads.build(ground.header.layers, (cell) => {
    cell.node.append(element("span"));
    cell.node.onfocus = () => peekAt(stage, cell);
    cell.node.onblur = () => peekAt(stage, null);
    return cell;
  });
}

/** Put a head that is pointed at into the matrix; null takes it out again.
 * @param {Stage} stage @param {HeadPlace | null} head */
export function peekAt(stage, head) {
  const {ground} = stage;
  if (!ground || (head && !isAtHand(ground, head))) return;
  const mine = head && head.layer === ground.header.layer && head.head === ground.header.head;
  stage.peek = mine ? null : head;
  drawStage(stage);
}
