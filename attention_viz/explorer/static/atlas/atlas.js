// All heads of a model as one grid in a Streamlit page. Called again for new data and for a change of theme.
//
// Which metric and which head the page shows comes through the channel beside it (see channel.js): the thumbnails are
// sent once. The reader's choices go to the page with a serial number, so that an older answer never moves the mark.

import {createCard} from "./card.js";
import {buildAtlas, markAtlas, paintAtlas, reachedBy, readColours} from "./grid.js";
import {element} from "../parts/element.js";
import {isMeant, latestFor, openChannel, sameBytes, themeOf} from "../hosts/hosting.js";
import {readPayload, readPlane} from "../data/payload.js";

const mounted = new WeakMap();

export default function atlasComponent({data, parentElement, setStateValue, setTriggerValue}) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(0);
  const atlas = mounted.get(parentElement) ?? create(parentElement);
  clearTimeout(atlas.leaving);
  Object.assign(atlas, {tell: setStateValue, trigger: setTriggerValue});
  atlas.root.dataset.theme = themeOf(atlas.root);
  if (atlas.bytes && sameBytes(atlas.bytes, bytes)) draw(atlas);
  else load(atlas, bytes);
  return () => {
    atlas.leaving = setTimeout(() => destroy(parentElement, atlas), 50);
  };
}

function create(parentElement) {
  const root = parentElement.querySelector(".av-atlas");
  const atlas = {
    root,
    parentElement,
    told: null,
    serial: 0,
    chosen: null,
    reached: "",
    listening: new AbortController(),
  };
  atlas.room = Number(root.dataset.height);
  atlas.title = element("h2");
  atlas.legend = element("div", {class: "av-scale", "aria-hidden": "true"});
  atlas.table = element("div", {class: "av-cells", role: "grid", "aria-label": "Heads: layers down, heads across"});
  root.replaceChildren(element("header", {}, atlas.title, atlas.legend), atlas.table);
  atlas.choose = (cell) => choose(atlas, cell);
  atlas.open = ({layer, head}) => atlas.trigger("open", {layer, head});
  atlas.card = createCard(atlas);
  listen(atlas);
  mounted.set(parentElement, atlas);
  return atlas;
}

async function load(atlas, bytes) {
  atlas.bytes = bytes;
  const payload = readPayload(bytes);
  const levels = await readPlane(payload, payload.header.plane);
  if (atlas.bytes !== bytes) return;
  Object.assign(atlas, {header: payload.header, levels});
  atlas.card.hide();
  buildAtlas(atlas);
  const told = latestFor(atlas.parentElement);
  if (told) follow(atlas, told);
}

function draw(atlas) {
  if (!atlas.header || !atlas.told) return;
  atlas.colours = readColours(atlas.root);
  paintAtlas(atlas);
  markAtlas(atlas);
  writeTitle(atlas);
  atlas.card.refresh();
}

/** Show what the page shows, unless the reader has chosen something since that the page hasn't heard of. */
function follow(atlas, told) {
  if (!isMeant(atlas.parentElement, told) || !atlas.header) return;
  atlas.told = told;
  if (!atlas.chosen || told.seen >= atlas.serial) {
    atlas.serial = Math.max(atlas.serial, told.seen);
    atlas.chosen = {layer: told.layer, head: told.head};
  }
  draw(atlas);
}

function choose(atlas, {layer, head}) {
  atlas.serial += 1;
  atlas.chosen = {layer, head};
  atlas.tell("choice", {layer, head, serial: atlas.serial});
  markAtlas(atlas);
}

function writeTitle({title, legend, header, told, colours}) {
  const metric = header.metrics.find(({name}) => name === told.metric);
  const words = told.patterns ? "Patterns of all heads " : `${metric.label}, by head `;
  title.replaceChildren(words, element("span", {class: "av-axes"}, "layer \u2193 head \u2192"));
  legend.hidden = told.patterns;
  const bar = element("div", {class: "av-bar"});
  bar.style.background = `linear-gradient(to right, ${colours.ramp.map((colour) => `rgb(${colour.join(" ")})`).join(", ")})`;
  const full = Number(header.fulls[told.metric].toPrecision(3));
  const unit = element("span", {class: "av-unit"}, metric.unit);
  const ticks = element("div", {class: "av-ends"}, element("span", {}, "0"), unit, element("span", {}, String(full)));
  legend.replaceChildren(bar, ticks);
}

function listen(atlas) {
  const {root, table, listening, card} = atlas;
  const {signal} = listening;
  const cellOf = ({target}) => {
    const node = target.closest?.("[data-head]");
    return node ? atlas.cells.get(`${node.dataset.layer} ${node.dataset.head}`) : null;
  };
  const on = (name, handle) => table.addEventListener(name, (event) => handle(event, cellOf(event)), {signal});
  on("pointerover", (event, cell) => cell && event.pointerType !== "touch" && card.point(cell));
  on("pointerleave", () => card.leave());
  on("click", (event, cell) => cell && reach(atlas, cell) && choose(atlas, cell));
  on("dblclick", (event, cell) => cell && atlas.open(cell));
  on("focusin", (event, cell) => cell?.node.matches(":focus-visible") && card.show(cell));
  on("keydown", (event, cell) => key(atlas, event, cell));
  root.addEventListener("keydown", (event) => event.key === "Escape" && closeCard(atlas), {signal});
  document.addEventListener("scroll", () => card.follow(), {signal, capture: true, passive: true});
  root.addEventListener("focusout", ({relatedTarget}) => root.contains(relatedTarget) || card.leave(), {signal});
  openChannel().target.addEventListener("choice", ({detail}) => follow(atlas, detail), {signal});
  atlas.resized = new ResizeObserver(() => draw(atlas));
  atlas.resized.observe(root);
}

function reach(atlas, {layer, head, node}) {
  atlas.reached = `${layer} ${head}`;
  markAtlas(atlas);
  node.focus();
  return true;
}

function key(atlas, event, cell) {
  if (!cell) return;
  atlas.reached = `${cell.layer} ${cell.head}`;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    choose(atlas, cell);
    return;
  }
  const to = reachedBy(atlas, event);
  if (!to) return;
  event.preventDefault();
  reach(atlas, to);
}

/** Back to the head that the card told of, where the focus was in the card. */
function closeCard(atlas) {
  const within = atlas.card.node.contains(atlas.root.getRootNode().activeElement);
  atlas.card.hide();
  if (within) atlas.cells.get(atlas.reached)?.node.focus();
}

function destroy(parentElement, atlas) {
  atlas.listening.abort();
  atlas.card.hide();
  atlas.resized.disconnect();
  mounted.delete(parentElement);
}
