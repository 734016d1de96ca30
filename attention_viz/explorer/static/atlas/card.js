// A head that is pointed at, told of in the place where the page tells of the chosen one: nothing beside the atlas is
// covered but that, and it comes back. Where that place is out of sight, as on a phone, a strip at the window's end.

import {element, fitCanvas, focused} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {drawPattern, placeWords} from "./grid.js";
import {silenceWords} from "./silence.js";
import {drawLarge, litWords} from "./photo.js";
import {drawPreview} from "./preview.js";
import {cellName} from "../heads/cells.js";
import {roleOf, wordingOf} from "./roles.js";

/** @import {Atlas, AtlasCell, AtlasHeader, AtlasMessage, Drawing} from "./grid.js" */

/**
 * The card: `show(cell)` and `hide()` at once; `point(cell)` once the pointer has stayed there; `keep(cell)` when it is
 * chosen; `leave()` unless the focus came to the head by keyboard.
 * @typedef {object} Card
 * @property {HTMLElement} node
 * @property {(cell: AtlasCell) => void} show
 * @property {(cell: AtlasCell) => void} point
 * @property {(cell: AtlasCell) => void} keep
 * @property {() => void} refresh
 * @property {() => void} follow  the head that it tells of, when the page is scrolled
 * @property {() => void} hide
 * @property {() => void} leave
 */

/** @typedef {{atlas: Atlas, node: HTMLElement, timer: number, shown: AtlasCell | null}} OwnCard */

const [LINGER, LEAVE] = [60, 120];
// How large a pattern is in a strip, in pixels.
const IN_STRIP = 72;
// How long a strip stays after a touch, in milliseconds: nothing leaves a head that was touched.
const STAYS = 4000;

/** A card inside the atlas. @param {Atlas} atlas @returns {Card} */
export function createCard(atlas) {
  const node = element("div", {class: "av-card", role: "group", popover: "manual"});
  /** @type {OwnCard} */
  const card = {atlas, node, timer: 0, shown: null};
  atlas.root.append(node);
  return {
    node,
    show: (cell) => show(card, cell),
    point: (cell) => {
      clearTimeout(card.timer);
      card.timer = setTimeout(() => show(card, cell), LINGER);
    },
    keep: (cell) => keep(card, cell),
    refresh: () => refresh(card),
    follow: () => stay(card),
    hide: () => hide(card),
    leave: () => leave(card),
  };
}

/** The page tells of a chosen head by itself, once it has read it; where that is out of sight, the strip does.
 * @param {OwnCard} card @param {AtlasCell} cell */
function keep(card, cell) {
  show(card, cell);
  endStrip(card);
}

/** A strip of the chosen head ends by itself: nothing leaves a head that was touched, and the place that tells of it
 * may come back unheard, since at a choice the page is drawn anew and may be without that place for a moment.
 * @param {OwnCard} card */
function endStrip(card) {
  if (!isOpen(card) || !card.node.classList.contains("av-strip")) return;
  clearTimeout(card.timer);
  card.timer = setTimeout(() => hide(card), STAYS);
}

/** Whether the page tells of the head that is shown. @param {OwnCard} card */
function isTold({shown, atlas: {message}}) {
  return shown !== null && message !== null && isChosen(message, shown);
}

/** Whether the page shows that head. @param {AtlasMessage} message @param {AtlasCell} cell */
function isChosen({layer, head, stream}, cell) {
  return layer === cell.layer && head === cell.head && (cell.of.stream ?? stream) === stream;
}

/** @param {OwnCard} card */
function refresh(card) {
  const {shown, atlas} = card;
  if (!shown) return;
  const cell = atlas.grid.cells.get(cellName(shown));
  const told = isTold(card);
  // By now the page tells of it.
  if (!cell || (told && !card.node.classList.contains("av-strip"))) hide(card);
  else show(card, cell);
}

/** @param {OwnCard} card */
function leave(card) {
  clearTimeout(card.timer);
  card.timer = setTimeout(() => {
    if (!hasFocus(card)) hide(card);
  }, LEAVE);
}

/** Whether the focus came by keyboard to the head that it tells of: a pointer that leaves, or that the page moves away
 * from, takes nothing from whoever walks along the heads.
 * @param {OwnCard} card */
function hasFocus({node, shown}) {
  return shown !== null && focused(node) === shown.node && shown.node.matches(":focus-visible");
}

/** @param {OwnCard} card */
function hide(card) {
  clearTimeout(card.timer);
  if (isOpen(card)) card.node.hidePopover();
  card.shown = null;
}

/** Stay in its place when the page is scrolled, as long as the head is on the screen. @param {OwnCard} card */
function stay(card) {
  if (!card.shown) return;
  const {top, bottom} = card.shown.node.getBoundingClientRect();
  if (bottom > 0 && top < document.documentElement.clientHeight) show(card, card.shown);
  else hide(card);
}

/** @param {OwnCard} card */
function isOpen({node}) {
  return node.matches(":popover-open");
}

/** @param {OwnCard} card @param {AtlasCell} cell */
function show(card, cell) {
  clearTimeout(card.timer);
  const {node, atlas} = card;
  if (!node.isConnected || !atlas.drawing) return;
  const place = placeFor(atlas);
  // Of the head that the page tells of there is nothing to add.
  if (place && isChosen(atlas.drawing.message, cell)) {
    hide(card);
    return;
  }
  node.classList.toggle("av-strip", place === null);
  fill(card, atlas.drawing, cell, place);
  // Above everything else on the page, whatever holds the atlas.
  if (!isOpen(card)) node.showPopover();
  if (place === null) {
    node.removeAttribute("style");
    if (isTold(card)) endStrip(card);
    return;
  }
  const {left, top, width, height} = place;
  Object.assign(node.style, {left: `${left}px`, top: `${top}px`, width: `${width}px`, minHeight: `${height}px`});
  drawInPlace(card, cell, place);
}

/** Where the page tells of the chosen head, if that is on the screen beside the atlas. @param {Atlas} atlas */
function placeFor({root, drawing}) {
  const part = drawing && document.querySelector(`.st-key-${CSS.escape(drawing.message.over)}`);
  if (!part) return null;
  const [box, own] = [part.getBoundingClientRect(), root.getBoundingClientRect()];
  const beside = box.left >= own.right && box.width >= 200;
  return beside && box.top < document.documentElement.clientHeight - 100 && box.bottom > 100 ? box : null;
}

/** What the page has of the chosen head, in the same order. @param {OwnCard} card @param {Drawing} drawing
 * @param {AtlasCell} cell @param {DOMRect | null} place */
function fill(card, drawing, cell, place) {
  const {header} = drawing;
  const same = card.shown === cell && card.node.dataset["of"] === String(place?.width);
  card.shown = cell;
  if (same && isOpen(card)) return;
  card.node.dataset["of"] = String(place?.width);
  card.node.setAttribute("aria-label", placeWords(cell, cell.of.kind ? " " : ", "));
  const title = element(
    "h3",
    {},
    placeWords(cell, cell.of.kind ? " " : ", "),
    element("span", {class: "av-quiet av-tip"}, "preview: a click keeps it"),
  );
  const silenced = silenceWords(card.atlas, cell);
  const notes = notesOf(header, cell);
  const parts = [
    title,
    element("p", {class: "av-card-role"}, roleWords(header, cell)),
    silenced ? element("p", {class: "av-changed"}, `${silenced[0].toUpperCase()}${silenced.slice(1)}.`) : null,
    place ? element("div", {class: "av-chart"}) : smallPattern(drawing, cell),
    notes ? element("p", {class: "av-quiet"}, notes) : null,
  ];
  card.node.replaceChildren(...parts.filter((part) => part !== null));
}

/** What a head does on average, as the page says it of the chosen one. @param {AtlasHeader} header @param {AtlasCell} cell */
export function roleWords(header, cell) {
  const role = roleOf(header, cell);
  const score = header.score[cell.place];
  const share = score === null || role.threshold === 0 ? "" : ` (${weightText(score)})`;
  const [label, meaning] = wordingOf(role, cell);
  return `${label} on average${share}. ${meaning}`;
}

/** Draw the matrix or the photo where the page has the chosen head's, so that a click moves nothing.
 * @param {OwnCard} card @param {AtlasCell} cell @param {DOMRect} place */
function drawInPlace({node, atlas: {header}}, cell, place) {
  const part = node.querySelector(".av-chart");
  if (!(part instanceof HTMLElement) || !header) return;
  const own = document.querySelector(".st-key-heads-matrix")?.getBoundingClientRect();
  part.style.marginTop = "";
  part.style.marginTop = `${Math.max(0, (own?.top ?? 0) - place.top - part.offsetTop)}px`;
  const width = document.querySelector(".st-key-heads-one")?.clientWidth ?? place.width;
  part.style.width = `${Math.min(width, place.width)}px`;
  if (part.hasChildNodes()) return;
  if (header.lights) drawLarge(part, header.lights, cell);
  else drawPreview(part, header, cell);
}

/** A pattern in small. @param {Drawing} drawing @param {AtlasCell} cell */
function smallPattern(drawing, cell) {
  const canvas = element("canvas", {
    role: "img",
    "aria-label": drawing.header.lights ? "Image lit by weight" : "Pattern: queries down, keys across",
  });
  const context = fitCanvas(canvas, IN_STRIP, IN_STRIP);
  context.putImageData(drawPattern(drawing, cell, canvas.width, canvas.height), 0, 0);
  return element("div", {}, canvas);
}

/** What a reader can't see: of an image whose light it is, of a long text how many weights lie under a cell.
 * @param {AtlasHeader} header @param {AtlasCell} cell */
function notesOf({pooled, lights}, cell) {
  if (lights) return litWords(lights, cell);
  const [down, across] = pooled;
  return down * across > 1 ? `Each cell is the largest of up to ${down} \u00d7 ${across} weights.` : "";
}
