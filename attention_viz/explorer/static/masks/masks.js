// A mask that is painted, in a Streamlit page: the matrix, and beside it what the mask did. Called again for new data.
//
// The run without the mask comes as bytes, once for a head. Which mask the page shows, and what the run with it came to,
// comes through the channel (see channel.js). The reader's choices go to the page with a serial number, so that the
// answer to an older one is never taken for that to the latest.

import {readGround, readRun} from "./board.js";
import {listenTo} from "./gestures.js";
import {bitsOf, BATCHED, bytesOf, nameOf, openCells, unpackBits} from "./rules.js";
import {createSheet} from "./sheet.js";
import {drawPointed, drawStage, peekAt, takeGround} from "./stage.js";
import {BRUSHES, createPresets, createStepper, createSwitch, SHOWN} from "./tools.js";
import {hearLatest, mountComponent, sendChoice, watchSize} from "../hosts/component.js";
import {HeadGrid} from "../heads/cells.js";
import {element} from "../parts/element.js";
import {createTooltip} from "../parts/tooltip.js";

/** @import {BoardMessage} from "./board.js"
 * @import {Stage} from "./stage.js"
 * @import {Mounted} from "../hosts/component.js"
 * @import {Message, Mounting} from "../hosts/hosting.js" */

const MOST_SIZE = 16;

/** @param {Mounting} mounting */
export default function masksComponent(mounting) {
  return mountComponent(mounting, {selector: ".av-masks", create, load, draw: drawStage, hear: follow});
}

/** @param {Mounted} base */
function create(base) {
  const {root} = base;
  /** @type {Stage} */
  const stage = {
    ...base,
    ...{parts: createParts(), sheet: createSheet(), tooltip: createTooltip(root)},
    presets: createPresets((mask) => choosePreset(stage, mask)),
    stepper: createStepper((by) => step(stage, by)),
    sizer: createStepper((by) => {
      stage.size = Math.max(1, Math.min(MOST_SIZE, by > 0 ? stage.size * 2 : stage.size / 2));
      drawStage(stage);
    }),
    switches: {
      brush: createSwitch("Brush", BRUSHES, (brush) => {
        stage.brush = brush;
        drawStage(stage);
      }),
      shown: createSwitch("Weights", SHOWN, (shown) => {
        stage.shown = shown;
        send(stage, stage.run !== null);
      }),
      scope: createSwitch("Applies to", {all: "every head", layer: "this layer", head: "this head only"}, (scope) =>
        chooseScope(stage, scope),
      ),
    },
    heads: new HeadGrid("Weight moved: layers across, heads down", {
      press: (head) => send(stage, false, head),
      point: (head) => peekAt(stage, head),
    }),
    ...{id: "", ground: null, message: null},
    choice: {mask: "none", window: 2, prefix: 2, in_layer: null, in_head: null},
    ...{added: new Uint8Array(0), drawn: null, run: null, last: null, shown: "difference", brush: "cell", size: 1},
    ...{peek: null, pair: null, over: null, overRow: null, cursor: null, painting: false, painted: null, window: ""},
  };
  stage.parts.elsewhere.onclick = () => sendChoice(stage, {stream: stage.message?.elsewhere});
  arrange(stage);
  listenTo(stage, {painted: () => finishStroke(stage), pointed: () => drawPointed(stage)});
  watchSize(stage, () => {
    const size = [root.clientWidth, window.innerHeight, window.devicePixelRatio].join(" ");
    if (size === stage.window) return;
    stage.window = size;
    drawStage(stage);
  });
  return stage;
}

/** @returns {Stage["parts"]} */
function createParts() {
  const list = (/** @type {string} */ name) =>
    element("ol", {class: `av-list av-${name}`, "data-testid": `mask-${name}`});
  return {
    claim: element("p", {class: "av-claim", "aria-live": "polite", "data-testid": "mask-claim"}),
    legend: element("div", {class: "av-mask-legend"}),
    outputs: list("outputs"),
    whole: list("whole"),
    outputsTitle: element("h2", {}, "Output moved by"),
    outputsNote: element("span", {class: "av-quiet"}),
    headsTitle: element("h2"),
    headsNote: element("span", {class: "av-quiet"}),
    wholeTitle: element("h2"),
    scopeNote: element("span", {class: "av-quiet"}),
    live: element("p", {class: "av-live", "aria-live": "polite"}),
    hint: element("span", {class: "av-quiet av-mask-hint"}),
    ...lockedParts(),
    application: element("div", {
      class: "av-application",
      role: "application",
      tabindex: 0,
      "aria-label": "Mask: arrow keys move, Space blocks or opens",
    }),
  };
}

/** Why no mask can be put on, with a button to a stream that takes one. */
function lockedParts() {
  const lockedWords = element("span");
  const elsewhere = element("button", {type: "button"});
  return {
    lockedWords,
    elsewhere,
    locked: element("p", {class: "av-mask-locked", hidden: true}, lockedWords, elsewhere),
  };
}

/** @param {Stage} stage */
function arrange({root, parts, presets, stepper, sizer, switches, sheet, heads}) {
  parts.application.append(sheet.node);
  const brush = element("div", {class: "av-brush"}, switches.brush.node);
  const tools = [presets.node, parts.locked, switches.shown.node, stepper.node, brush];
  const below = element("div", {class: "av-mask-below"}, parts.legend, sizer.node, parts.hint, parts.live);
  const left = element("section", {class: "av-mask-left"}, ...tools, parts.application, below);
  const titled = (/** @type {(Node | string)[]} */ head, /** @type {Node} */ body) =>
    element("section", {}, element("header", {}, ...head), body);
  const right = element(
    "div",
    {class: "av-mask-side"},
    element("header", {class: "av-scope"}, element("h2", {}, "Applies to ", parts.scopeNote), switches.scope.node),
    titled([parts.outputsTitle, parts.outputsNote], parts.outputs),
    titled([parts.headsTitle, parts.headsNote], heads.table),
    titled([parts.wholeTitle], parts.whole),
  );
  const top = element("div", {class: "av-mask-claim"}, parts.claim);
  root.append(top, element("div", {class: "av-mask-columns"}, left, right));
}

/** @param {Stage} stage @param {Uint8Array} bytes */
async function load(stage, bytes) {
  const ground = await readGround(bytes);
  if (stage.data !== bytes) return;
  takeGround(stage, ground);
  stage.message = null;
  hearLatest(stage, follow);
}

/** Show what the page shows, unless the reader has chosen something since that the page hasn't heard of, or the bytes
 * that it belongs to aren't there yet.
 * @param {Stage} stage @param {Message} told */
function follow(stage, told) {
  const {ground} = stage;
  if (!ground) return;
  const message = /** @type {BoardMessage} */ (told);
  const {header, rows, columns} = ground;
  if (message.board !== header.id) return;
  // Of a stroke that isn't at its end the page hears once it is.
  const heard = (message.seen ?? 0) >= stage.serial && !stage.painting;
  if (stage.message && !heard) return;
  const size = rows * columns;
  stage.serial = Math.max(stage.serial, message.seen ?? 0);
  stage.message = message;
  stage.choice = {...message.choice};
  stage.shown = message.weights;
  stage.added = message.added ? unpackBits(bytesOf(message.added), size) : new Uint8Array(size).fill(1);
  if (message.choice.mask === "drawn") stage.drawn = stage.added.slice();
  else if (stage.drawn && stage.drawn.length !== size) stage.drawn = null;
  stage.run = message.run && readRun(message.run, size, header.mixed !== undefined);
  stage.last = stage.run ?? stage.last;
  // Where no pair was chosen, the head's own link.
  const [query, key] =
    message.query == null || message.key == null ? (message.link ?? []) : [message.query, message.key];
  stage.pair = query === undefined || key === undefined ? null : {query, key};
  drawStage(stage);
}

/** Tell the page what is chosen now.
 * @param {Stage} stage
 * @param {boolean} ran  whether what ran stays what is chosen
 * @param {{layer: number, head: number} | null} keep  another head, to be chosen */
function send(stage, ran = false, keep = null) {
  const {ground, choice, added, message, shown} = stage;
  if (!ground) return;
  if (!ran && !keep) stage.run = null;
  const {layer, head} = keep ?? ground.header;
  // Of a batch, whose tokens are others, no cells are handed over: what was painted before holds.
  const own = choice.mask === "drawn" && !BATCHED.includes(message?.choice.mask ?? "");
  const blocked = own ? bitsOf(added.map((cell) => 1 - cell)) : null;
  const place = {layer, head, query: message?.query ?? null, key: message?.key ?? null};
  sendChoice(stage, {...choice, ...place, cells: blocked, count: ground.columns, weights: shown});
  drawStage(stage);
}

/** @param {Stage} stage */
function finishStroke(stage) {
  const {ground, choice, added} = stage;
  if (!ground) return;
  const mask = nameOf(added, ground.own, ground.columns, choice);
  stage.choice = {...choice, mask};
  stage.drawn = mask === "drawn" ? added.slice() : stage.drawn;
  send(stage);
}

/** @param {Stage} stage @param {string} mask */
function choosePreset(stage, mask) {
  const {ground} = stage;
  if (!ground || mask === stage.choice.mask) return;
  const size = ground.rows * ground.columns;
  const cells = mask === "drawn" ? (stage.drawn ?? new Uint8Array(size).fill(1)) : null;
  const open = cells ?? openCells(mask, ground.rows, stage.choice);
  if (open && !BATCHED.includes(stage.choice.mask)) {
    stage.added = open.slice();
    stage.choice = {...stage.choice, mask};
    send(stage);
    return;
  }
  // What two sentences come to is known once they have been read together: until then the last mask stays, grey.
  const {choice} = stage;
  stage.choice = {...choice, mask};
  send(stage);
  stage.choice = choice;
  drawStage(stage);
}

/** @param {Stage} stage @param {number} by */
function step(stage, by) {
  const {ground, choice} = stage;
  const name = choice.mask === "window" ? "window" : "prefix";
  if (!ground) return;
  const least = name === "window" ? 1 : 0;
  stage.choice = {...choice, [name]: Math.max(least, Math.min(ground.rows, choice[name] + by))};
  stage.added = openCells(choice.mask, ground.rows, stage.choice) ?? stage.added;
  send(stage);
}

/** @param {Stage} stage @param {string} scope */
function chooseScope(stage, scope) {
  const {ground, choice} = stage;
  if (!ground) return;
  const {layer, head} = ground.header;
  stage.choice = {...choice, in_layer: scope === "all" ? null : layer, in_head: scope === "head" ? head : null};
  send(stage);
}
