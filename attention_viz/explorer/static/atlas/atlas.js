// All heads of a model as one grid in a Streamlit page. Called again for new data and for a change of theme.
//
// Which metric and which head the page shows comes through the channel beside it (see channel.js): the thumbnails are
// sent once. The reader's choices go to the page with a serial number, so that an older answer never moves the mark.

import {createCard} from "./card.js";
import {createCards} from "./cards.js";
import {buildAtlas, paintAtlas, readColours} from "./grid.js";
import {writeMarks, writeTitle} from "./legend.js";
import {announceHead, followSilence, markSilence} from "./silence.js";
import {readPayload, readPlane} from "../data/payload.js";
import {hearLatest, mountComponent, sendChoice, takesChoice, watchSize} from "../hosts/component.js";
import {isEmbedded} from "../hosts/hosting.js";
import {HeadGrid} from "../heads/cells.js";
import {element, focused} from "../parts/element.js";
import {readLights} from "./photo.js";
import {readMatrices} from "./preview.js";
import {followPlace, placeCards} from "./placing.js";

/** @import {Atlas, AtlasCell, AtlasHeader, AtlasMessage, EffectsMessage} from "./grid.js"
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
  const marks = element("p", {class: "av-marks"});
  /** @type {HeadGrid<AtlasCell>} */
  const grid = new HeadGrid("Heads: layers across, heads down", {
    press: (cell, {type}) => {
      choose(atlas, cell);
      if (type === "click") atlas.card.keep(cell);
    },
    point: (cell) => (cell ? atlas.card.point(cell) : atlas.card.leave()),
  });
  /** @type {Omit<Atlas, "card" | "cards">} */
  const bare = {
    ...base,
    ...{title, legend, marks, grid, room: Number(root.dataset["height"])},
    ...{header: null, message: null, effects: [], drawing: null, chosen: null},
    open: (place) => isEmbedded(root) || atlas.setTriggerValue("open", placeOnly(place)),
  };
  const atlas = /** @type {Atlas} */ (bare);
  atlas.cards = createCards(atlas, (cell) => choose(atlas, cell));
  root.replaceChildren(element("header", {}, title, legend), grid.table, marks);
  atlas.card = createCard(atlas);
  listen(atlas);
  return atlas;
}

/** @param {Atlas} atlas @param {Uint8Array} bytes */
async function load(atlas, bytes) {
  /** @type {Payload<AtlasHeader>} */
  const payload = readPayload(bytes);
  const [levels] = await Promise.all([readPlane(payload, payload.header.plane), readLights(payload)]);
  if (atlas.data !== bytes) return;
  readMatrices(payload);
  atlas.header = payload.header;
  const {table, cells, reached} = atlas.grid;
  const hadFocus = table.contains(focused(table));
  atlas.card.hide();
  buildAtlas(atlas, payload.header, levels);
  hearLatest(atlas, follow);
  hearLatest(atlas, follow, "effects");
  // Whoever walks along the heads by keyboard goes on from where they were.
  if (hadFocus) cells.get(reached)?.node.focus();
}

/** @param {Atlas} atlas */
function draw(atlas) {
  const {header, message, effects, chosen, root} = atlas;
  // An element that has left the page has no colours.
  if (!header || !message || !chosen || !root.isConnected) return;
  const drawing = {header, message, effects, colours: readColours(root)};
  atlas.drawing = drawing;
  paintAtlas(atlas, drawing);
  atlas.grid.mark(atlas.chosen);
  writeTitle(atlas, drawing);
  placeCards(atlas);
  atlas.cards.draw(drawing);
  mark(atlas);
  atlas.card.refresh();
}

/** @param {Atlas} atlas */
function mark(atlas) {
  markSilence(atlas);
  writeMarks(atlas);
}

/** Show what the page shows, unless the reader has chosen something since that the page hasn't heard of.
 * @param {Atlas} atlas @param {Message} message */
function follow(atlas, message) {
  if (!atlas.header) return;
  if (message.about === "effects") {
    atlas.effects = /** @type {EffectsMessage} */ (message).effects;
    draw(atlas);
    return;
  }
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
  announceHead(atlas, cell);
  atlas.grid.mark(atlas.chosen);
  if (atlas.drawing) atlas.cards.draw(atlas.drawing);
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
  followSilence(atlas, signal, () => mark(atlas));
  watchSize(atlas, () => draw(atlas));
}

/** @param {HTMLElement} root @param {EventTarget | null} target */
function isInside(root, target) {
  return target instanceof Node && root.contains(target);
}
