// The card beside a head that is pointed at: its pattern enlarged, with its tokens' names, and its numbers.

import {element, fitCanvas} from "../parts/element.js";
import {drawPattern} from "./grid.js";

const SIZE = 200;
const NAMED = 12;
const [LINGER, LEAVE] = [120, 250];

/**
 * A card inside the atlas: `show(cell)` and `hide()` at once; `point(cell)` once the pointer has stayed there, so that it
 * can cross other heads on its way to the card; `leave()` unless the pointer or the focus has come to the card.
 */
export function createCard(atlas) {
  const node = element("div", {class: "av-card", role: "group", popover: "manual"});
  const card = {atlas, node, timer: 0, shown: null};
  node.onpointerenter = () => clearTimeout(card.timer);
  node.onpointerleave = () => leave(card);
  atlas.root.append(node);
  return {
    node,
    show: (cell) => show(card, cell),
    point: (cell) => point(card, cell),
    refresh: () => card.shown && fill(card, atlas.cells.get(`${card.shown.layer} ${card.shown.head}`) ?? card.shown),
    follow: () => stay(card),
    hide: () => hide(card),
    leave: () => leave(card),
  };
}

function point(card, cell) {
  clearTimeout(card.timer);
  card.timer = setTimeout(() => show(card, cell), LINGER);
}

function leave(card) {
  clearTimeout(card.timer);
  card.timer = setTimeout(() => {
    if (!card.node.contains(card.node.getRootNode().activeElement)) hide(card);
  }, LEAVE);
}

function hide(card) {
  clearTimeout(card.timer);
  if (isOpen(card)) card.node.hidePopover();
  card.shown = null;
}

/** Stay with the head when the page is scrolled, as long as it is on the screen. */
function stay(card) {
  if (!card.shown) return;
  const {top, bottom} = card.shown.node.getBoundingClientRect();
  if (bottom > 0 && top < document.documentElement.clientHeight) place(card, card.shown);
  else hide(card);
}

function isOpen({node}) {
  return node.matches(":popover-open");
}

function show(card, cell) {
  clearTimeout(card.timer);
  if (!card.node.isConnected) return;
  fill(card, cell);
  // Above everything else on the page, whatever holds the atlas.
  if (!isOpen(card)) card.node.showPopover();
  place(card, cell);
}

function fill(card, cell) {
  const {node, atlas} = card;
  const {layer, head} = cell;
  card.shown = cell;
  node.setAttribute("aria-label", `Layer ${layer}, head ${head}`);
  node.replaceChildren(
    element("h3", {}, `Layer ${layer}, head ${head}`),
    pattern(atlas, cell),
    element("p", {class: "av-quiet"}, scaleWords(atlas.header, cell)),
    numbers(atlas, cell),
    link(atlas, cell),
  );
}

/** The pattern with the names of its rows and columns, as many as find room. */
function pattern(atlas, cell) {
  const {queries, keys} = atlas.header;
  const canvas = element("canvas", {role: "img", "aria-label": "Its pattern: queries down, keys across"});
  const context = fitCanvas(canvas, SIZE, SIZE);
  context.putImageData(drawPattern(atlas, cell, canvas.width, canvas.height), 0, 0);
  const rows = element("ul", {class: "av-rows av-query", "aria-hidden": "true"}, ...labels(queries, "top"));
  const columns = element("ul", {class: "av-columns av-keys", "aria-hidden": "true"}, ...labels(keys, "left"));
  return element("div", {class: "av-pattern"}, columns, rows, canvas);
}

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

/** What the deepest colour stands for, and how many cells lie under each that is drawn. */
function scaleWords({pooled}, {full}) {
  const [down, across] = pooled;
  const many = down * across > 1 ? ` Each cell is the largest of up to ${down} × ${across} weights.` : "";
  return `Deepest colour: ${Number(full.toPrecision(3))}.${many}`;
}

/** Every number of this head; of several texts, the mean and its spread. */
function numbers(atlas, cell) {
  const rows = atlas.header.metrics.flatMap(({name, label}) => {
    const number = atlas.header.numbers[name][cell.place];
    if (number === null) return [];
    const spread = atlas.header.spreads?.[name][cell.place];
    const written = spread == null ? number.toFixed(3) : `${number.toFixed(3)} ± ${spread.toFixed(3)}`;
    const chosen = name === atlas.told.metric ? "av-current" : null;
    return [element("tr", {class: chosen}, element("th", {scope: "row"}, label), element("td", {}, written))];
  });
  return element("table", {}, element("tbody", {}, ...rows));
}

/** To the same head in Explore. A plain click goes through the app, which keeps what a link can't carry. */
function link(atlas, {layer, head}) {
  const address = new URL("./", location.href);
  address.search = new URLSearchParams({...atlas.told.address, layer, head});
  const node = element("a", {href: address.href}, "Open in Explore");
  node.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    atlas.open({layer, head});
  };
  return node;
}

/** Beside the grid, where it covers no head; below the head where that doesn't fit. Never outside the window. */
function place({node, atlas}, {node: cell}) {
  const [grid, box] = [atlas.table, cell].map((one) => one.getBoundingClientRect());
  const [width, height] = [node.offsetWidth, node.offsetHeight];
  const {clientWidth, clientHeight} = document.documentElement;
  const beside = grid.right + 10 + width <= clientWidth - 4;
  const [left, top] = beside ? [grid.right + 10, box.top - 40] : [box.left, box.bottom + 6];
  node.style.left = `${Math.max(4, Math.min(left, clientWidth - width - 4))}px`;
  node.style.top = `${Math.max(4, Math.min(top, clientHeight - height - 4))}px`;
}
