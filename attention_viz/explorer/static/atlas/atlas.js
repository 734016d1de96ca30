// All heads of a model as one grid in a Streamlit page. Called again for new data and for a change of theme.
//
// Which metric and which head the page shows comes through the channel beside it (see channel.js): the thumbnails are
// sent once. The reader's choices go to the page with a serial number, so that an older answer never moves the mark.

import {createCard} from "./card.js";
import {createCards} from "./cards.js";
import {buildAtlas, paintAtlas, readColours} from "./grid.js";
import {fullOf, percent} from "./numbers.js";
import {readPayload, readPlane} from "../data/payload.js";
import {isMeant, latestFor, listenToChannel, sameBytes, themeOf} from "../hosts/hosting.js";
import {HeadGrid, axesOf} from "../heads/cells.js";
import {rgb} from "../data/scale.js";
import {element, focused} from "../parts/element.js";
import {followPlace, placeCards} from "./placing.js";

/**
 * @import {Atlas, AtlasCell, AtlasHeader, AtlasMessage, Drawing} from "./grid.js"
 * @import {Payload} from "../data/payload.js"
 * @import {Message, Mounting} from "../hosts/hosting.js"
 */

// How soon after it was let go an element is looked at, and how often from then on while it is still on the page.
const [LEAVING, STAYING] = [50, 1000];
/** @type {WeakMap<HTMLElement, Atlas>} */
const mounted = new WeakMap();

/** @param {Mounting} mounting */
export default function atlasComponent({data, parentElement, setStateValue, setTriggerValue}) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(0);
  const atlas = mounted.get(parentElement) ?? create(parentElement, setStateValue, setTriggerValue);
  clearTimeout(atlas.leaving);
  Object.assign(atlas, {setStateValue, setTriggerValue});
  atlas.root.dataset["theme"] = themeOf(atlas.root);
  if (atlas.bytes && sameBytes(atlas.bytes, bytes)) draw(atlas);
  else load(atlas, bytes);
  return () => cleanUp(parentElement, atlas);
}

/**
 * @param {HTMLElement} parentElement
 * @param {Mounting["setStateValue"]} setStateValue
 * @param {Mounting["setTriggerValue"]} setTriggerValue
 * @returns {Atlas}
 */
function create(parentElement, setStateValue, setTriggerValue) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(".av-atlas"));
  const title = element("h2");
  const legend = element("div", {class: "av-scale", "aria-hidden": "true"});
  /** @type {HeadGrid<AtlasCell>} */
  const grid = new HeadGrid("Heads: layers down, heads across", {
    press: (cell, {type}) => {
      choose(atlas, cell);
      if (type === "click") atlas.card.keep(cell);
    },
    point: (cell) => (cell ? atlas.card.point(cell) : atlas.card.leave()),
  });
  /** @type {Omit<Atlas, "card" | "cards">} */
  const bare = {
    ...{root, parentElement, title, legend, grid, room: Number(root.dataset["height"])},
    ...{bytes: null, header: null, message: null, drawing: null},
    ...{serial: 0, chosen: null, leaving: 0, listening: new AbortController()},
    ...{setStateValue, setTriggerValue},
    open: ({layer, head}) => atlas.setTriggerValue("open", {layer, head}),
  };
  const atlas = /** @type {Atlas} */ (bare);
  atlas.cards = createCards(atlas, (cell) => choose(atlas, cell));
  root.replaceChildren(element("header", {}, title, legend), grid.table);
  atlas.card = createCard(atlas);
  listen(atlas);
  mounted.set(parentElement, atlas);
  return atlas;
}

/**
 * @param {Atlas} atlas
 * @param {Uint8Array} bytes
 */
async function load(atlas, bytes) {
  atlas.bytes = bytes;
  /** @type {Payload<AtlasHeader>} */
  const payload = readPayload(bytes);
  const levels = await readPlane(payload, payload.header.plane);
  if (atlas.bytes !== bytes) return;
  atlas.header = payload.header;
  const {table, cells, reached} = atlas.grid;
  const hadFocus = table.contains(focused(table));
  atlas.card.hide();
  buildAtlas(atlas, payload.header, levels);
  const message = latestFor(atlas.parentElement);
  if (message) follow(atlas, message);
  // Whoever walks along the heads by keyboard goes on from where they were.
  if (hadFocus) cells.get(reached)?.node.focus();
}

/** @param {Atlas} atlas */
function draw(atlas) {
  const {header, message, chosen, root} = atlas;
  // An element that has left the page has no colours.
  if (!header || !message || !chosen || !root.isConnected) return;
  const drawing = {header, message, colours: readColours(root)};
  atlas.drawing = drawing;
  paintAtlas(atlas, drawing);
  atlas.grid.mark(atlas.chosen);
  writeTitle(atlas, drawing);
  placeCards(atlas);
  atlas.cards.draw(drawing);
  atlas.card.refresh();
}

/**
 * Show what the page shows, unless the reader has chosen something since that the page hasn't heard of.
 * @param {Atlas} atlas
 * @param {Message} message
 */
function follow(atlas, message) {
  if (!isMeant(atlas.parentElement, message) || !atlas.header) return;
  atlas.message = /** @type {AtlasMessage} */ (message);
  const {layer, head, seen = 0} = message;
  if (!atlas.chosen || seen >= atlas.serial) {
    atlas.serial = Math.max(atlas.serial, seen);
    atlas.chosen = {layer, head};
  }
  draw(atlas);
}

/**
 * @param {Atlas} atlas
 * @param {AtlasCell} cell
 */
function choose(atlas, {layer, head}) {
  atlas.serial += 1;
  atlas.chosen = {layer, head};
  atlas.setStateValue("choice", {layer, head, serial: atlas.serial});
  atlas.grid.mark(atlas.chosen);
  if (atlas.drawing) atlas.cards.draw(atlas.drawing);
}

/**
 * What the colours say, and from what to what they go.
 * @param {Atlas} atlas
 * @param {Drawing} drawing
 */
function writeTitle({title, legend, grid}, drawing) {
  const {header, message, colours} = drawing;
  const metric = header.metrics.find(({name}) => name === message.metric);
  const words = {
    roles: "What each head mostly does",
    patterns: "Patterns of all heads",
    colours: `${metric?.label}, by head`,
    silenced: "How far the output moves without each head",
  };
  title.replaceChildren(`${words[message.view]} `, element("span", {class: "av-axes"}, axesOf(grid.layout)));
  legend.hidden = message.view === "patterns" || (message.view === "silenced" && fullOf(drawing) <= 1e-9);
  const roles = message.view === "roles";
  const shown = roles ? [colours.background, colours.roles[0]] : colours.ramp;
  const bar = element("div", {class: "av-bar"});
  bar.style.background = `linear-gradient(to right, ${shown.map(rgb).join(", ")})`;
  const full = fullOf(drawing);
  const most = message.view === "silenced" ? percent(full) : String(Number(full.toPrecision(3)));
  const unit = {roles: "", patterns: "", colours: metric?.unit, silenced: "root scale"}[message.view];
  const ends = roles ? ["threshold", "strongest"] : ["0", most];
  const ticks = ends.map((end) => element("span", {}, end));
  ticks.splice(1, 0, element("span", {class: "av-unit"}, unit));
  legend.replaceChildren(bar, element("div", {class: "av-ends"}, ...ticks));
}

/** @param {Atlas} atlas */
function listen(atlas) {
  const {root, grid, listening, card} = atlas;
  const {signal} = listening;
  grid.table.ondblclick = (event) => {
    const cell = grid.cellOf(event);
    if (cell) atlas.open(cell);
  };
  grid.table.addEventListener("focusin", (event) => {
    const cell = grid.cellOf(event);
    if (cell?.node.matches(":focus-visible")) card.show(cell);
  });
  root.addEventListener("keydown", (event) => event.key === "Escape" && card.hide(), {signal});
  root.addEventListener("focusout", (event) => isInside(root, event.relatedTarget) || card.leave(), {signal});
  document.addEventListener("scroll", () => card.follow(), {signal, capture: true, passive: true});
  listenToChannel((message) => follow(atlas, message), signal);
  followPlace(atlas, signal);
  const observer = new ResizeObserver(() => draw(atlas));
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
}

/**
 * @param {HTMLElement} root
 * @param {EventTarget | null} target
 */
function isInside(root, target) {
  return target instanceof Node && root.contains(target);
}

/**
 * Clean up once the element has left the page. Until then the function may be called for it again, on a busy machine
 * after a while: an atlas built anew would take the focus from whoever walks along the heads.
 * @param {HTMLElement} parentElement
 * @param {Atlas} atlas
 * @param {number} wait
 */
function cleanUp(parentElement, atlas, wait = LEAVING) {
  atlas.leaving = setTimeout(() => {
    if (parentElement.isConnected) cleanUp(parentElement, atlas, STAYING);
    else destroy(parentElement, atlas);
  }, wait);
}

/**
 * @param {HTMLElement} parentElement
 * @param {Atlas} atlas
 */
function destroy(parentElement, atlas) {
  atlas.listening.abort();
  atlas.card.hide();
  atlas.cards.node.remove();
  mounted.delete(parentElement);
}
