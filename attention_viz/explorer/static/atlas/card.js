// The card beside a head that is pointed at: its pattern enlarged, with its tokens' names, and its numbers.

import {element, fitCanvas, focused} from "../parts/element.js";
import {drawPattern} from "./grid.js";

/** @import {Atlas, AtlasCell, AtlasHeader, Drawing} from "./grid.js" */

/**
 * The card: `show(cell)` and `hide()` at once; `point(cell)` once the pointer has stayed there, so that it can cross other
 * heads on its way to the card; `leave()` unless the pointer or the focus has come to the card.
 * @typedef {object} Card
 * @property {HTMLElement} node
 * @property {(cell: AtlasCell) => void} show
 * @property {(cell: AtlasCell) => void} point
 * @property {() => void} refresh
 * @property {() => void} follow  the head that it tells of, when the page is scrolled
 * @property {() => void} hide
 * @property {() => void} leave
 */

/** @typedef {{atlas: Atlas, node: HTMLElement, timer: number, shown: AtlasCell | null}} OwnCard */

const SIZE = 200;
const NAMED = 12;
const [LINGER, LEAVE] = [120, 250];

/**
 * A card inside the atlas.
 * @param {Atlas} atlas
 * @returns {Card}
 */
export function createCard(atlas) {
  const node = element("div", {class: "av-card", role: "group", popover: "manual"});
  /** @type {OwnCard} */
  const card = {atlas, node, timer: 0, shown: null};
  node.onpointerenter = () => clearTimeout(card.timer);
  node.onpointerleave = () => leave(card);
  atlas.root.append(node);
  return {
    node,
    show: (cell) => show(card, cell),
    point: (cell) => point(card, cell),
    refresh: () => {
      if (card.shown) fill(card, atlas.cells.get(`${card.shown.layer} ${card.shown.head}`) ?? card.shown);
    },
    follow: () => stay(card),
    hide: () => hide(card),
    leave: () => leave(card),
  };
}

/**
 * @param {OwnCard} card
 * @param {AtlasCell} cell
 */
function point(card, cell) {
  clearTimeout(card.timer);
  card.timer = setTimeout(() => show(card, cell), LINGER);
}

/** @param {OwnCard} card */
function leave(card) {
  clearTimeout(card.timer);
  card.timer = setTimeout(() => {
    if (!hasFocus(card)) hide(card);
  }, LEAVE);
}

/**
 * Whether the focus is in the card, or came by keyboard to the head that it tells of: a pointer that leaves, or that the
 * page moves away from, takes nothing from whoever walks along the heads.
 * @param {OwnCard} card
 */
function hasFocus({node, shown}) {
  const at = focused(node);
  return node.contains(at) || (shown !== null && at === shown.node && shown.node.matches(":focus-visible"));
}

/** @param {OwnCard} card */
function hide(card) {
  clearTimeout(card.timer);
  if (isOpen(card)) card.node.hidePopover();
  card.shown = null;
}

/**
 * Stay with the head when the page is scrolled, as long as it is on the screen.
 * @param {OwnCard} card
 */
function stay(card) {
  if (!card.shown) return;
  const {top, bottom} = card.shown.node.getBoundingClientRect();
  if (bottom > 0 && top < document.documentElement.clientHeight) place(card, card.shown);
  else hide(card);
}

/** @param {OwnCard} card */
function isOpen({node}) {
  return node.matches(":popover-open");
}

/**
 * @param {OwnCard} card
 * @param {AtlasCell} cell
 */
function show(card, cell) {
  clearTimeout(card.timer);
  if (!card.node.isConnected) return;
  fill(card, cell);
  // Above everything else on the page, whatever holds the atlas.
  if (!isOpen(card)) card.node.showPopover();
  place(card, cell);
}

/**
 * @param {OwnCard} card
 * @param {AtlasCell} cell
 */
function fill(card, cell) {
  const {node, atlas} = card;
  const {drawing} = atlas;
  if (!drawing) return;
  const {layer, head} = cell;
  card.shown = cell;
  node.setAttribute("aria-label", `Layer ${layer}, head ${head}`);
  node.replaceChildren(
    element("h3", {}, `Layer ${layer}, head ${head}`),
    pattern(drawing, cell),
    element("p", {class: "av-quiet"}, scaleWords(drawing.header, cell)),
    numbers(drawing, cell),
    link(atlas, drawing, cell),
  );
}

/**
 * The pattern with the names of its rows and columns, as many as find room.
 * @param {Drawing} drawing
 * @param {AtlasCell} cell
 */
function pattern(drawing, cell) {
  const {queries, keys} = drawing.header;
  const canvas = element("canvas", {role: "img", "aria-label": "Its pattern: queries down, keys across"});
  const context = fitCanvas(canvas, SIZE, SIZE);
  context.putImageData(drawPattern(drawing, cell, canvas.width, canvas.height), 0, 0);
  const rows = element("ul", {class: "av-rows av-query", "aria-hidden": "true"}, ...labels(queries, "top"));
  const columns = element("ul", {class: "av-columns av-keys", "aria-hidden": "true"}, ...labels(keys, "left"));
  return element("div", {class: "av-pattern"}, columns, rows, canvas);
}

/**
 * @param {string[]} names
 * @param {"top" | "left"} side
 */
function labels(names, side) {
  const step = Math.ceil(names.length / NAMED);
  return names
    .map((name, at) => ({name, at}))
    .filter(({at}) => at % step === 0)
    .map(({name, at}) => {
      const item = element("li", {}, element("bdi", {}, name));
      item.style[side] = `${((at + 0.5) / names.length) * SIZE}px`;
      return item;
    });
}

/**
 * What the deepest colour stands for, and how many cells lie under each that is drawn.
 * @param {AtlasHeader} header
 * @param {AtlasCell} cell
 */
function scaleWords({pooled}, {full}) {
  const [down, across] = pooled;
  const many = down * across > 1 ? ` Each cell is the largest of up to ${down} × ${across} weights.` : "";
  return `Deepest colour: ${Number(full.toPrecision(3))}.${many}`;
}

/**
 * Every number of this head; of several texts, the mean and its spread.
 * @param {Drawing} drawing
 * @param {AtlasCell} cell
 */
function numbers({header, message}, cell) {
  const rows = header.metrics.flatMap(({name, label}) => {
    const number = header.numbers[name][cell.place];
    if (number === null) return [];
    const spread = header.spreads?.[name][cell.place];
    const written = spread == null ? number.toFixed(3) : `${number.toFixed(3)} ± ${spread.toFixed(3)}`;
    const chosen = name === message.metric ? "av-current" : null;
    return [element("tr", {class: chosen}, element("th", {scope: "row"}, label), element("td", {}, written))];
  });
  return element("table", {}, element("tbody", {}, ...rows));
}

/**
 * To the same head in Explore. A plain click goes through the app, which keeps what a link can't carry.
 * @param {Atlas} atlas
 * @param {Drawing} drawing
 * @param {AtlasCell} cell
 */
function link(atlas, {message}, {layer, head}) {
  const address = new URL("./", location.href);
  const parameters = new URLSearchParams({...message.address, layer: String(layer), head: String(head)});
  address.search = String(parameters);
  const node = element("a", {href: address.href}, "Open in Explore");
  node.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    atlas.open({layer, head});
  };
  return node;
}

/**
 * Beside the grid, where it covers no head; below the head where that doesn't fit. Never outside the window.
 * @param {OwnCard} card
 * @param {AtlasCell} cell
 */
function place({node, atlas}, {node: cell}) {
  const [grid, box] = [atlas.table, cell].map((one) => one.getBoundingClientRect());
  const [width, height] = [node.offsetWidth, node.offsetHeight];
  const {clientWidth, clientHeight} = document.documentElement;
  const beside = grid.right + 10 + width <= clientWidth - 4;
  const [left, top] = beside ? [grid.right + 10, box.top - 40] : [box.left, box.bottom + 6];
  node.style.left = `${Math.max(4, Math.min(left, clientWidth - width - 4))}px`;
  node.style.top = `${Math.max(4, Math.min(top, clientHeight - height - 4))}px`;
}
