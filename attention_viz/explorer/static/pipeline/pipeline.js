// One head as a pipeline for a chosen pair, in a Streamlit page. Called again for new data and for a change of theme.
//
// Which pair the page shows comes through the channel beside it (see channel.js). The reader's choices go to the page
// with a serial number, so that an older answer never moves the choice.

import {chainOf, heightsOf} from "./chain.js";
import {drawFactors} from "./factors.js";
import {drawMixture} from "./mixture.js";
import {hasPair, openPair, readOpened} from "./numbers.js";
import {placesFor} from "./geometry.js";
import {claimOf, writeWords} from "./words.js";
import {markOf, move} from "./motion.js";
import {attendOpening, hearDrawer, openDrawer} from "./opening.js";
import {drawRest, readRest, restHeight} from "./rest.js";
import {saidNodes, tellWay} from "./reading.js";
import {drawRow} from "./row.js";
import {drawSum, sumTerms} from "./sum.js";
import {createScene, drawDescent, finish} from "./scene.js";
import {weightText} from "../data/scale.js";
import {openChannel} from "../hosts/hosting.js";
import {isInSight, landNumber} from "../hosts/travel.js";
import {hearLatest, mountComponent, sendChoice, takesChoice, watchSize} from "../hosts/component.js";
import {arrowStep, element, focusOne, focused, listener, svg, within} from "../parts/element.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Message, Mounting} from "../hosts/hosting.js"
 * @import {Opened, Pair} from "./numbers.js"
 * @import {Places} from "./geometry.js"
 * @import {Rest} from "./rest.js"
 * @import {Scene} from "./scene.js" */

/** @typedef {Message & {terms: number}} PipelineMessage */

/** A pipeline on the page: `terms` are how many are named, `told` the place that is pointed at, `drawn` what is on the
 * screen.
 * @typedef {Mounted & {claim: HTMLElement, strip: HTMLElement, stage: SVGSVGElement, reading: HTMLElement, waiting: HTMLElement, opened: Opened | null, chosen: {query: number, key: number} | null, terms: number, scene: Scene | null, pair: Pair | null, places: Places | null, told: Element | null, drawn: string, rest: Rest | null, handed?: Uint8Array}} Pipeline */

/** @param {Mounting} mounting */
export default function pipelineComponent(mounting) {
  return mountComponent(mounting, {
    ...{selector: ".av-pipeline", create, draw: show},
    load(pipeline, bytes) {
      Object.assign(pipeline, {opened: readOpened(bytes), drawn: ""});
      hearLatest(pipeline, hear);
      show(pipeline);
    },
    hear,
  });
}

/** @param {Mounted} base */
function create(base) {
  const claim = element("p", {class: "av-claim", "data-testid": "pipeline-claim"});
  const strip = element("div", {class: "av-pair-words"});
  const stage = /** @type {SVGSVGElement} */ (
    svg("svg", {class: "av-flowchart", role: "group", "aria-label": "From two words to one head\u2019s output"})
  );
  const reading = element("div", {class: "av-reading", role: "status", "data-testid": "pipeline-reading"});
  const waiting = element("aside", {class: "av-drawer-wait", "aria-live": "polite", hidden: true});
  base.root.replaceChildren(element("div", {class: "av-top"}, claim, strip), stage, reading, waiting);
  /** @type {Pipeline} */
  const pipeline = {
    ...base,
    ...{claim, strip, stage, reading, waiting, opened: null, chosen: null, terms: 6},
    ...{scene: null, pair: null, places: null, told: null, drawn: "", rest: null},
  };
  attend(pipeline);
  return pipeline;
}

/** Follow the page, unless the reader has chosen something since that the page hasn't heard of.
 * @param {Pipeline} pipeline @param {Message} message */
function hear(pipeline, message) {
  const {query, key, terms} = /** @type {PipelineMessage} */ (message);
  pipeline.terms = terms;
  if (query != null && key != null && takesChoice(pipeline, message)) pipeline.chosen = {query, key};
  show(pipeline);
}

/** @param {Pipeline} pipeline @param {number} query @param {number} key */
function choosePair(pipeline, query, key) {
  pipeline.chosen = {query, key};
  sendChoice(pipeline, pipeline.chosen);
  show(pipeline);
}

/** Draw what is chosen, if its numbers are there and it isn't on the screen. @param {Pipeline} pipeline */
function show(pipeline) {
  const {opened, chosen, stage, terms} = pipeline;
  const width = stage.clientWidth;
  if (!opened || !chosen || !width) return;
  const {query, key} = chosen;
  const state = [query, key, terms, width, window.innerHeight].join(" ");
  if (state === pipeline.drawn) return;
  const isThere = hasPair(opened, query, key);
  pipeline.root.setAttribute("aria-busy", String(!isThere));
  if (!isThere) return;
  const pair = openPair(opened, query, key, terms);
  const before = pipeline.pair;
  const why = element("button", {type: "button", class: "av-how", "data-testid": "pipeline-why"}, "Why?");
  why.onclick = () => pipeline.setTriggerValue("open", "why");
  pipeline.claim.replaceChildren(...claimOf(opened, pair), " ", why);
  writeWords(pipeline.strip, opened, pair, (...to) => choosePair(pipeline, ...to));
  const places = paint(pipeline, opened, pair, width);
  pipeline.drawn = state;
  if (before === null) land(pipeline, pair);
  else if (pipeline.scene && (before.query !== query || before.key !== key)) move(pipeline.scene, pair, places);
}

/** Let a number that comes from another page land on the pair's weight: beside its bar, or in the sentence if that is
 * out of sight.
 * @param {Pipeline} pipeline @param {Pair} pair */
function land({scene, claim}, {query, key, weight}) {
  const inRow = scene ? markOf(scene, `weight-${key}`, "text:not(.av-lane-word)") : null;
  const node = isInSight(inRow) ? inRow : claim.querySelector(".av-claim-number");
  landNumber(node, {text: weightText(weight), query, key});
}

/** The rest of the layer that is shown; null while it is awaited. @param {Pipeline} pipeline @param {Opened} opened */
function restOf(pipeline, {header}) {
  const bytes = openChannel().rests.get(header.rest);
  if (bytes && pipeline.handed !== bytes) Object.assign(pipeline, {handed: bytes, rest: readRest(bytes)});
  return pipeline.rest?.header.of === header.rest ? pipeline.rest : null;
}

/** @param {Pipeline} pipeline @param {Opened} opened @param {Pair} pair @param {number} width */
function paint(pipeline, opened, pair, width) {
  const {stage} = pipeline;
  const steps = heightsOf(chainOf(opened, pair));
  const rest = restOf(pipeline, opened);
  const counts = {lanes: pair.lanes.length, terms: sumTerms(pair).length, steps, rest: restHeight(rest)};
  const places = placesFor(width, window.innerHeight, opened.header, counts);
  const reached = focused(stage);
  const before = reached && stage.contains(reached) ? reached.getAttribute("aria-label") : null;
  stage.setAttribute("viewBox", `0 0 ${width} ${places.height}`);
  stage.style.height = `${places.height}px`;
  const hatch = svg("pattern", {
    id: "av-pipeline-hatch",
    width: 6,
    height: 6,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  hatch.append(svg("path", {d: "M0 0V6", class: "av-hatch-line"}));
  // What is focused loses it by being taken away, and would be told of with the pair before and the numbers of this one.
  pipeline.scene = null;
  stage.replaceChildren(svg("defs", {}, hatch));
  const scene = createScene(stage);
  const product = drawFactors(scene, opened, pair, places, rest);
  const score = drawSum(scene, opened, pair, places, product);
  drawRow(scene, opened, pair, places, score);
  drawMixture(scene, opened, pair, places);
  drawRest(scene, opened, pair, places, rest);
  if (places.narrow) drawDescent(scene, places);
  finish(scene, opened.header.steps);
  Object.assign(pipeline, {scene, pair, places, told: null});
  stage.classList.remove("av-pointed");
  tellWay(pipeline);
  if (openChannel().drawer) hearDrawer(pipeline);
  const again = [...stage.querySelectorAll("[aria-label]")].find((node) => node.getAttribute("aria-label") === before);
  if (again instanceof SVGElement) again.focus({preventScroll: true});
  return places;
}

/** Tell of the place that is pointed at, and let all else fade.
 * @param {Pipeline} pipeline @param {Element | null} node */
function point(pipeline, node) {
  const {scene, stage, reading} = pipeline;
  if (!scene || pipeline.told === node) return;
  pipeline.told = node;
  const hit = node ? scene.hits.get(node) : undefined;
  stage.classList.toggle("av-pointed", hit !== undefined);
  for (const [mark, tags] of scene.marks)
    mark.classList.toggle("av-lit", hit?.tags.some((tag) => tags.includes(tag)) ?? false);
  if (!hit) {
    tellWay(pipeline);
    return;
  }
  const ends = element("p", {class: "av-ends"}, "from ", element("b", {}, hit.from), " to ", element("b", {}, hit.to));
  reading.replaceChildren(element("p", {}, ...saidNodes(hit.told)), ends);
}

/** What a press does: open a matrix, or choose a key. @param {Pipeline} pipeline @param {Event} event */
function press(pipeline, event) {
  const opens = within(event, "[data-open]");
  if (opens) {
    openDrawer(pipeline, opens);
    return;
  }
  const hit = pipeline.scene?.hits.get(/** @type {Element} */ (event.target));
  if (hit?.key !== undefined && pipeline.chosen) choosePair(pipeline, pipeline.chosen.query, hit.key);
}

/** @param {Pipeline} pipeline */
function attend(pipeline) {
  const on = listener(pipeline.stage, pipeline.signal);
  const hitOf = (/** @type {Event} */ event) => within(event, ".av-hit");
  for (const name of /** @type {const} */ (["pointerover", "focusin"]))
    on(name, (event) => point(pipeline, hitOf(event)));
  for (const name of /** @type {const} */ (["pointerleave", "focusout"])) on(name, () => point(pipeline, null));
  on("click", (event) => press(pipeline, event));
  on("keydown", (event) => walkHits(pipeline, event));
  attendOpening(pipeline);
  watchSize(pipeline, () => show(pipeline));
  const arrived = () => show(Object.assign(pipeline, {drawn: ""}));
  openChannel().target.addEventListener("rest", arrived, {signal: pipeline.signal});
  openChannel().target.addEventListener("drawer", () => hearDrawer(pipeline), {signal: pipeline.signal});
}

/** Arrow keys go to the next place of the same group; Enter and Space press.
 * @param {Pipeline} pipeline @param {KeyboardEvent} event */
function walkHits(pipeline, event) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    press(pipeline, event);
    return;
  }
  const [down, across] = arrowStep(event.key) ?? [0, 0];
  const hit = pipeline.scene?.hits.get(/** @type {Element} */ (event.target));
  if (!(down || across) || !hit || !pipeline.scene) return;
  const group = [...pipeline.scene.hits]
    .filter(([, other]) => other.group === hit.group)
    .map(([node]) => /** @type {SVGElement} */ (node));
  const next = group[group.indexOf(/** @type {SVGElement} */ (event.target)) + down + across];
  if (!next) return;
  event.preventDefault();
  focusOne(group, next);
}
