// The words beside a picture in a line, with the picture as one of them; arcs say what the chosen one attends to.

import {calledWhole, panelOf} from "./telling.js";
import {drawArcs, drawNumbers} from "../parts/arcs.js";
import {element, fitCanvas, focusOne, isPointing, placeByKey, within} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {hasAny} from "../data/store.js";
import {lookedAt, lookedLine, pinPatch} from "./chosen.js";
import {SHOWN_ROW} from "./patches.js";

/** @import {Edge} from "../parts/arcs.js"
 * @import {Part} from "../parts/view.js"
 * @import {StageView} from "./chosen.js"
 * @import {Patches} from "./patches.js" */

/** A word, or with no position an image, and its patches' positions.
 * @typedef {{position: number | null, node: HTMLElement, inside: number[]}} Chip */

const FAINTEST_BESIDE = 0.005;

/** The line, with arcs above it. @param {StageView} view @param {Patches} patches @returns {Part} */
export function createPhrase(view, patches) {
  const chips = chipsOf(view, patches);
  const words = chips.filter(({position}) => position !== null);
  const line = element(
    "div",
    {class: "av-line", role: "listbox", "aria-label": "Words", "aria-orientation": "horizontal"},
    ...chips.map(({node}) => node),
  );
  const scroller = element("div", {class: "av-scroll"}, line);
  const canvas = element("canvas", {class: "av-arcs", "aria-hidden": "true"});
  const hint = element("p", {class: "av-hint"}, hintOf(calledWhole(patches)));
  const attributes = {
    class: "av-strip av-phrase",
    "data-testid": "explorer-arcs",
    "aria-label": `Words and ${calledWhole(patches)}`,
  };
  const node = element("section", attributes, scroller, canvas, hint);
  scroller.onscroll = () => drawPhrase(view, patches, chips, scroller, canvas);
  listenToPhrase(view, patches, line, words);
  return {
    node,
    draw(changed) {
      if (!hasAny(changed, ...SHOWN_ROW, "overKey", "size", "theme", "stream")) return;
      tintChips(view, patches, chips);
      drawPhrase(view, patches, chips, scroller, canvas);
    },
  };
}

/** @param {string} whole */
function hintOf(whole) {
  return `Point at a word to light the patches that it attends to. Point at the ${whole} to see the words that attend there.`;
}

/** @param {StageView} view @param {Patches} patches @returns {Chip[]} */
function chipsOf({now: {stream}}, patches) {
  const {shown, dimmed, spoken, origins} = stream.queries;
  const words = patches.others.map((position) => {
    const look = `av-token${dimmed[position] ? " av-special" : ""}${origins[position] ? ` av-${origins[position]}` : ""}`;
    const attributes = {
      class: look,
      role: "option",
      tabindex: "-1",
      "data-place": position,
      "aria-label": spoken[position],
    };
    return {position, node: element("div", attributes, element("bdi", {}, shown[position])), inside: []};
  });
  words.find(({position}) => !dimmed[position])?.node.setAttribute("tabindex", "0");
  const images = imagesOf(patches).map(({called, inside}) => {
    const attributes = {class: "av-token av-picture-chip", title: `${inside.length} patches as one`};
    return {position: null, node: element("div", attributes, called), inside};
  });
  const first = (/** @type {Chip} */ {position, inside}) => position ?? Math.min(...inside);
  return [...words, ...images].sort((one, other) => first(one) - first(other));
}

/** What stands in the line for patches: the picture or video, or each of several images.
 * @param {Patches} patches @returns {{called: string, inside: number[]}[]} */
function imagesOf(patches) {
  const {positions, across, sheet} = patches;
  const whole = positions.filter((position) => position >= 0);
  const called = calledWhole(patches);
  if (!sheet || called !== "images") return [{called: `${called}, all patches`, inside: [...whole]}];
  const pictures = new Set(sheet.panels.map(({picture}) => picture));
  return Array.from(pictures, (picture) => ({
    called: `image ${picture + 1}`,
    inside: [...positions].filter((position, at) => position >= 0 && panelOf(at, across, sheet).picture === picture),
  }));
}

/** @param {StageView} view @param {Patches} patches @param {HTMLElement} line @param {Chip[]} words */
function listenToPhrase(view, patches, line, words) {
  const placeOf = (/** @type {Event} */ event) => {
    const place = within(event, "[data-place]")?.dataset["place"];
    return place === undefined ? null : Number(place);
  };
  line.onpointerover = (event) => {
    const place = placeOf(event);
    if (isPointing(event)) view.point({query: place, key: null}, true);
  };
  line.onpointerleave = () => view.point({query: null, key: null});
  line.onclick = (event) => {
    const place = placeOf(event);
    if (place !== null) pinPatch(view, patches, place);
  };
  line.onkeydown = (event) => {
    const at = words.findIndex(({position}) => position === placeOf(event));
    const step = placeByKey(event.key, at, words.length);
    if (step !== null) {
      const next = words[Math.min(Math.max(step, 0), words.length - 1)];
      focusOne(
        words.map((one) => one.node),
        next.node,
      );
      view.point({query: next.position, key: null}, true);
    } else if (event.key === "Enter" || event.key === " ") {
      if (words[at]?.position != null) pinPatch(view, patches, words[at].position);
    } else if (event.key === "Escape") view.point({query: null, key: null});
    else return;
    event.preventDefault();
  };
}

/** How much the chosen word gives to each of the others, and to each image; or each word to the region.
 * @param {StageView} view @param {Patches} patches */
function givenTo(view, patches) {
  const line = lookedLine(view, patches);
  return (/** @type {Chip} */ {position, inside}) =>
    position === null ? inside.reduce((sum, one) => sum + line[one], 0) : line[position];
}

/** @param {StageView} view @param {Patches} patches @param {Chip[]} chips */
function tintChips(view, patches, chips) {
  const {position: chosen, direction} = lookedAt(view, patches);
  const given = givenTo(view, patches);
  for (const chip of chips) {
    const {node, position, inside} = chip;
    const isPicture = position === null;
    const weight = direction === "to" && isPicture ? 0 : given(chip);
    node.style.setProperty("--av-weight", weight.toFixed(2));
    node.classList.toggle(
      "av-is-query",
      direction === "from" && (isPicture ? inside.includes(chosen) : position === chosen),
    );
    node.classList.toggle("av-is-key", direction === "to" && inside.includes(chosen));
    node.dataset["weight"] = weightText(weight);
    node.setAttribute("aria-selected", String(position === view.now.pair?.query));
  }
}

/** @param {StageView} view @param {Patches} patches @param {Chip[]} chips @param {HTMLElement} scroller
 * @param {HTMLCanvasElement} canvas */
function drawPhrase(view, patches, chips, scroller, canvas) {
  const {offsetLeft, offsetTop} = scroller;
  const [width, height] = [scroller.clientWidth, scroller.clientHeight];
  Object.assign(canvas.style, {left: `${offsetLeft}px`, top: `${offsetTop}px`});
  const context = fitCanvas(canvas, width, height);
  context.clearRect(0, 0, width, height);
  if (view.now.head === null) return;
  context.translate(-scroller.scrollLeft, 0);
  const edges = edgesOf(view, patches, chips);
  const {node} = chips[0];
  const y = (node.parentElement?.offsetTop ?? 0) + node.offsetTop - 2;
  /** @type {import("../parts/arcs.js").ArcPlace} */
  const where = {y, up: -1, room: y - 24, colours: view.colours, font: view.fonts.small, faint: false};
  drawArcs(context, edges, where);
  drawNumbers(context, edges, {...where, lifted: true});
}

/** @param {StageView} view @param {Patches} patches @param {Chip[]} chips @returns {Edge[]} */
function edgesOf(view, patches, chips) {
  const {position: chosen, direction} = lookedAt(view, patches);
  const given = givenTo(view, patches);
  const left = chips[0].node.parentElement?.offsetLeft ?? 0;
  const middle = (/** @type {Chip} */ {node}) => left + node.offsetLeft + node.offsetWidth / 2;
  const own = chips.find(({position, inside}) => position === chosen || inside.includes(chosen));
  if (!own) return [];
  return chips
    .filter((chip) => direction === "from" || chip.position !== null)
    .map((chip) => {
      const [from, to] = direction === "from" ? [own, chip] : [chip, own];
      const weight = given(chip);
      return {from: middle(from), to: middle(to), weight, place: weight};
    })
    .filter(({weight}) => weight >= FAINTEST_BESIDE)
    .sort((one, other) => other.weight - one.weight);
}
