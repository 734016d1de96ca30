// All heads of a model as one grid in a Streamlit page. Called again for new data and for a change of theme.
//
// Which metric and which head the page shows comes through the channel beside it (see channel.js): the thumbnails are
// sent once. The reader's choices go to the page with a serial number, so that an older answer never moves the mark.

import {createCard} from "./card.js";
import {createCards} from "./cards.js";
import {buildAtlas, markAtlas, paintAtlas, reachedBy, readColours} from "./grid.js";
import {fullOf, percent} from "./numbers.js";
import {readPayload, readPlane} from "../data/payload.js";
import {hearLatest, mountComponent, sendChoice, takesChoice, watchSize} from "../hosts/component.js";
import {axesOf} from "../heads/cells.js";
import {element, focused, within} from "../parts/element.js";
import {followPlace, placeCards} from "./placing.js";
import {layHeads} from "../heads/layout.js";

/** @import {Atlas, AtlasCell, AtlasHeader, AtlasMessage, Drawing} from "./grid.js"
 * @import {Payload} from "../data/payload.js"
 * @import {Mounted} from "../hosts/component.js"
 * @import {Message, Mounting} from "../hosts/hosting.js" */

/** @param {Mounting} mounting */
export default function atlasComponent(mounting) {
  return mountComponent(mounting, {
    ...{selector: ".av-atlas", create, load, draw, hear: follow},
    leave: ({card, cards}) => {
      card.hide();
      cards.node.remove();
    },
  });
}

/** @param {Mounted} base */
function create(base) {
  const {root} = base;
  const title = element("h2");
  const legend = element("div", {class: "av-scale", "aria-hidden": "true"});
  const table = element("div", {class: "av-cells", role: "grid", "aria-label": "Heads: layers down, heads across"});
  /** @type {Omit<Atlas, "card" | "cards">} */
  const bare = {
    ...base,
    ...{title, legend, table, room: Number(root.dataset["height"])},
    ...{header: null, message: null, drawing: null, cells: new Map(), chosen: null, reached: ""},
    layout: layHeads([{heads: 1}], {width: 0, height: 0}),
    open: ({layer, head}) => atlas.setTriggerValue("open", {layer, head}),
  };
  const atlas = /** @type {Atlas} */ (bare);
  atlas.cards = createCards(atlas, (cell) => choose(atlas, cell));
  root.replaceChildren(element("header", {}, title, legend), table);
  atlas.card = createCard(atlas);
  listen(atlas);
  return atlas;
}

/** @param {Atlas} atlas @param {Uint8Array} bytes */
async function load(atlas, bytes) {
  /** @type {Payload<AtlasHeader>} */
  const payload = readPayload(bytes);
  const levels = await readPlane(payload, payload.header.plane);
  if (atlas.bytes !== bytes) return;
  atlas.header = payload.header;
  const hadFocus = atlas.table.contains(focused(atlas.table));
  atlas.card.hide();
  buildAtlas(atlas, payload.header, levels);
  hearLatest(atlas, follow);
  // Whoever walks along the heads by keyboard goes on from where they were.
  if (hadFocus) atlas.cells.get(atlas.reached)?.node.focus();
}

/** @param {Atlas} atlas */
function draw(atlas) {
  const {header, message, chosen, root} = atlas;
  // An element that has left the page has no colours.
  if (!header || !message || !chosen || !root.isConnected) return;
  const drawing = {header, message, colours: readColours(root)};
  atlas.drawing = drawing;
  paintAtlas(atlas, drawing);
  markAtlas(atlas);
  writeTitle(atlas, drawing);
  placeCards(atlas);
  atlas.cards.draw(drawing);
  atlas.card.refresh();
}

/** Show what the page shows, unless the reader has chosen something since that the page hasn't heard of.
 * @param {Atlas} atlas @param {Message} message */
function follow(atlas, message) {
  if (!atlas.header) return;
  atlas.message = /** @type {AtlasMessage} */ (message);
  const {layer, head} = message;
  if (takesChoice(atlas, message)) atlas.chosen = {layer, head};
  draw(atlas);
}

/** @param {Atlas} atlas @param {AtlasCell} cell */
function choose(atlas, {layer, head}) {
  atlas.chosen = {layer, head};
  sendChoice(atlas, atlas.chosen);
  markAtlas(atlas);
  if (atlas.drawing) atlas.cards.draw(atlas.drawing);
}

/** What the colours say, and from what to what they go. @param {Atlas} atlas @param {Drawing} drawing */
function writeTitle({title, legend, layout}, drawing) {
  const {header, message, colours} = drawing;
  const metric = header.metrics.find(({name}) => name === message.metric);
  const words = {
    roles: "What each head mostly does",
    patterns: "Patterns of all heads",
    colours: `${metric?.label}, by head`,
    silenced: "How far the output moves without each head",
  };
  title.replaceChildren(`${words[message.view]} `, element("span", {class: "av-axes"}, axesOf(layout)));
  legend.hidden = message.view === "patterns" || (message.view === "silenced" && fullOf(drawing) <= 1e-9);
  const roles = message.view === "roles";
  const shown = roles ? [colours.background, colours.roles[0]] : colours.ramp;
  const bar = element("div", {class: "av-bar"});
  bar.style.background = `linear-gradient(to right, ${shown.map((colour) => `rgb(${colour.join(" ")})`).join(", ")})`;
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
  const {root, table, signal, card} = atlas;
  const cellOf = (/** @type {Event} */ event) => {
    const node = within(event, "[data-head]");
    return node ? atlas.cells.get(`${node.dataset["layer"]} ${node.dataset["head"]}`) : undefined;
  };
  /** Hear what happens to a cell.
   * @template {keyof HTMLElementEventMap} N @param {N} name
   * @param {(cell: AtlasCell, event: HTMLElementEventMap[N]) => void} handle */
  const on = (name, handle) => {
    const hear = (/** @type {HTMLElementEventMap[N]} */ event) => {
      const cell = cellOf(event);
      if (cell) handle(cell, event);
    };
    table.addEventListener(name, hear, {signal});
  };
  /** @type {string | undefined} */
  let pointer;
  const hasMoved = (/** @type {PointerEvent} */ {screenX, screenY}) => {
    const before = pointer;
    pointer = `${screenX} ${screenY}`;
    return pointer !== before;
  };
  table.addEventListener("pointermove", hasMoved, {signal});
  // A page that moves under a resting pointer asks for no card.
  on("pointerover", (cell, event) => hasMoved(event) && event.pointerType !== "touch" && card.point(cell));
  on("click", (cell) => {
    reach(atlas, cell);
    choose(atlas, cell);
    card.keep(cell);
  });
  on("dblclick", (cell) => atlas.open(cell));
  on("focusin", (cell) => cell.node.matches(":focus-visible") && card.show(cell));
  on("keydown", (cell, event) => press(atlas, cell, event));
  table.addEventListener("pointerleave", () => card.leave(), {signal});
  root.addEventListener("keydown", (event) => event.key === "Escape" && card.hide(), {signal});
  root.addEventListener("focusout", (event) => isInside(root, event.relatedTarget) || card.leave(), {signal});
  document.addEventListener("scroll", () => card.follow(), {signal, capture: true, passive: true});
  followPlace(atlas, signal);
  watchSize(atlas, () => draw(atlas));
}

/** @param {HTMLElement} root @param {EventTarget | null} target */
function isInside(root, target) {
  return target instanceof Node && root.contains(target);
}

/** Give a head the focus. @param {Atlas} atlas @param {AtlasCell} cell */
function reach(atlas, {layer, head, node}) {
  atlas.reached = `${layer} ${head}`;
  markAtlas(atlas);
  node.focus();
}

/** @param {Atlas} atlas @param {AtlasCell} cell @param {KeyboardEvent} event */
function press(atlas, cell, event) {
  atlas.reached = `${cell.layer} ${cell.head}`;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    choose(atlas, cell);
    return;
  }
  const to = reachedBy(atlas, event.key);
  if (!to) return;
  event.preventDefault();
  reach(atlas, to);
}
