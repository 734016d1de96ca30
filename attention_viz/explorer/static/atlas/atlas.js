// All heads of a model as one grid in a Streamlit page. Called again for new data and for a change of theme.
//
// Which metric and which head the page shows comes through the channel beside it (see channel.js): the thumbnails are
// sent once. The reader's choices go to the page with a serial number, so that an older answer never moves the mark.

import {createCard} from "./card.js";
import {createCards} from "./cards.js";
import {buildAtlas, paintAtlas, readColours} from "./grid.js";
import {fullOf, isSigned, percent} from "./numbers.js";
import {readPayload, readPlane} from "../data/payload.js";
import {hearLatest, mountComponent, sendChoice, takesChoice, watchSize} from "../hosts/component.js";
import {HeadGrid, axesOf} from "../heads/cells.js";
import {rgb} from "../data/scale.js";
import {element, focused} from "../parts/element.js";
import {followPlace, placeCards} from "./placing.js";

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
    ...base,
    ...{title, legend, grid, room: Number(root.dataset["height"])},
    ...{header: null, message: null, drawing: null, chosen: null},
    open: (place) => atlas.setTriggerValue("open", placeOnly(place)),
  };
  const atlas = /** @type {Atlas} */ (bare);
  atlas.cards = createCards(atlas, (cell) => choose(atlas, cell));
  root.replaceChildren(element("header", {}, title, legend), grid.table);
  atlas.card = createCard(atlas);
  listen(atlas);
  return atlas;
}

/** @param {Atlas} atlas @param {Uint8Array} bytes */
async function load(atlas, bytes) {
  /** @type {Payload<AtlasHeader>} */
  const payload = readPayload(bytes);
  const levels = await readPlane(payload, payload.header.plane);
  if (atlas.data !== bytes) return;
  atlas.header = payload.header;
  const {table, cells, reached} = atlas.grid;
  const hadFocus = table.contains(focused(table));
  atlas.card.hide();
  buildAtlas(atlas, payload.header, levels);
  hearLatest(atlas, follow);
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

/** Show what the page shows, unless the reader has chosen something since that the page hasn't heard of.
 * @param {Atlas} atlas @param {Message} message */
function follow(atlas, message) {
  if (!atlas.header) return;
  atlas.message = /** @type {AtlasMessage} */ (message);
  const {layer, head, stream} = atlas.message;
  if (takesChoice(atlas, message)) atlas.chosen = {layer, head, ...nameIn(atlas.header.layers, stream, layer)};
  draw(atlas);
}

/** The name of a layer, where numbers come twice. @param {AtlasHeader["layers"]} layers @param {string} stream
 * @param {number} layer */
function nameIn(layers, stream, layer) {
  const name = layers.find((one) => one.stream === stream && one.number === layer)?.name;
  return name === undefined ? {} : {name};
}

/** A head's place as the page is told of it. @param {AtlasCell} cell */
function placeOnly({layer, head, of: {stream}}) {
  return stream === undefined ? {layer, head} : {layer, head, stream};
}

/** @param {Atlas} atlas @param {AtlasCell} cell */
function choose(atlas, cell) {
  atlas.chosen = cell;
  sendChoice(atlas, placeOnly(cell));
  atlas.grid.mark(atlas.chosen);
  if (atlas.drawing) atlas.cards.draw(atlas.drawing);
}

/** What the colours say, and from what to what they go. @param {Atlas} atlas @param {Drawing} drawing */
function writeTitle({title, legend}, drawing) {
  const {header, message, colours} = drawing;
  const metric = header.metrics.find(({name}) => name === message.metric);
  const words = {
    roles: "Role of each head",
    patterns: "Patterns of all heads",
    colours: `${metric?.label}, by head`,
    silenced: "Effect of ablating each head",
  };
  title.replaceChildren(`${words[message.view]} `, element("span", {class: "av-axes"}, axesOf()));
  legend.hidden = message.view === "patterns" || (message.view === "silenced" && fullOf(drawing) <= 1e-9);
  const roles = message.view === "roles";
  const signed = isSigned(drawing);
  const shown = roles ? [colours.background, colours.roles[0]] : signed ? colours.differences : colours.ramp;
  const bar = element("div", {class: "av-bar"});
  bar.style.background = `linear-gradient(to right, ${shown.map(rgb).join(", ")})`;
  const full = fullOf(drawing);
  const most = message.view === "silenced" ? percent(full) : String(Number(full.toPrecision(3)));
  const unit = {roles: "", patterns: "", colours: metric?.unit, silenced: "root scale"}[message.view];
  const ends = roles ? ["threshold", "strongest"] : [signed ? `\u2212${most}` : "0", most];
  const ticks = ends.map((end) => element("span", {}, end));
  ticks.splice(1, 0, element("span", {class: "av-unit"}, unit));
  legend.replaceChildren(bar, element("div", {class: "av-ends"}, ...ticks));
}

/** @param {Atlas} atlas */
function listen(atlas) {
  const {root, grid, signal, card} = atlas;
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
  followPlace(atlas, signal);
  watchSize(atlas, () => draw(atlas));
}

/** @param {HTMLElement} root @param {EventTarget | null} target */
function isInside(root, target) {
  return target instanceof Node && root.contains(target);
}
