// The cells of the atlas: each head as a colour with its number, or as a small picture of its pattern.

import {gridRows, headByKey, headSize} from "../parts/cells.js";
import {element, fitCanvas} from "../parts/element.js";
import {coloured, sample} from "../data/raster.js";
import {channels, colourTable, onRamp, pixel} from "../data/scale.js";

const BLOCKED = 255;
// One of the two can be read on any colour: no grey could.
const [BLACK, WHITE] = [
  [0, 0, 0],
  [255, 255, 255],
];
const LEVELS = 254;
const WRITTEN_FROM = 24;
// Of a model with few layers, cells are higher than wide, so that they fill their place.
const TALLEST = 1.6;
const VALUES = Float64Array.from({length: BLOCKED + 1}, (_, level) => level / LEVELS);

/** Build a cell for each head into the atlas's table. */
export function buildAtlas(atlas) {
  const {layers, tops, queries, keys} = atlas.header;
  const size = queries.length * keys.length;
  const levels = (place) => atlas.levels.subarray(place * size, (place + 1) * size);
  const starts = layers.map((_, layer) => layers.slice(0, layer).reduce((sum, {heads}) => sum + heads, 0));
  atlas.cells = new Map();
  const build = (layer, head) => {
    const place = starts[layer] + head;
    const cell = {layer, head, place, full: tops[place], pattern: readPattern(levels(place), queries.length)};
    cell.canvas = element("canvas", {"aria-hidden": "true"});
    cell.number = element("span", {class: "av-written"});
    const places = {"data-layer": layer, "data-head": head};
    cell.node = element("div", {class: "av-cell", role: "gridcell", ...places}, cell.canvas, cell.number);
    atlas.cells.set(`${layer} ${head}`, cell);
    return cell.node;
  };
  atlas.table.replaceChildren(...gridRows(layers, build));
}

/** The packed levels as the explorer's rasters read a head: whole numbers (key, query), and which are blocked. */
function readPattern(levels, queries) {
  const blocked = levels.includes(BLOCKED) ? Uint8Array.from(levels, (level) => (level === BLOCKED ? 1 : 0)) : null;
  return {weights: levels, blocked, queries};
}

/** A head's pattern as an image of that many pixels. */
export function drawPattern(atlas, cell, width, height) {
  const {queries, keys} = atlas.header;
  const [rows, columns] = [queries, keys].map(({length}) => Int32Array.from({length}, (_, place) => place));
  const {ramp, background, blocked} = atlas.colours;
  const hatching = {
    ground: pixel(background),
    hatch: pixel(onRamp([background, blocked], 0.7)),
    period: Math.round(4 * (window.devicePixelRatio || 1)),
  };
  const pixels = sample(cell.pattern, rows, columns, width, height);
  return coloured(pixels, width, height, colourTable(VALUES, "linear", 1, ramp), hatching);
}

/** Fit the cells to their place, and paint them. */
export function paintAtlas(atlas) {
  const {layers} = atlas.header;
  const width = headSize(layers, atlas.root.clientWidth, atlas.room);
  const height = Math.min(Math.floor(TALLEST * width), Math.max(width, headSize(layers, Infinity, atlas.room)));
  const {patterns, metric} = atlas.told;
  const {label} = atlas.header.metrics.find(({name}) => name === metric);
  atlas.table.style.setProperty("--av-size", `${width}px`);
  atlas.table.style.setProperty("--av-height", `${height}px`);
  for (const cell of atlas.cells.values()) {
    const number = atlas.header.numbers[metric][cell.place];
    const told = number === null ? "nothing to count" : number.toFixed(3);
    cell.node.setAttribute("aria-label", `Layer ${cell.layer} head ${cell.head}, ${label}: ${told}`);
    cell.canvas.hidden = !patterns;
    cell.number.hidden = patterns;
    if (patterns) paintPattern(atlas, cell, width, height);
    else paintColour(atlas, cell, number, width);
  }
}

function paintPattern(atlas, cell, width, height) {
  const context = fitCanvas(cell.canvas, width, height);
  context.putImageData(drawPattern(atlas, cell, cell.canvas.width, cell.canvas.height), 0, 0);
  cell.node.style.background = "";
}

function paintColour(atlas, cell, number, width) {
  const {ramp, background} = atlas.colours;
  const colour = number === null ? background : onRamp(ramp, number / atlas.header.fulls[atlas.told.metric]);
  const written = number === null ? "" : number < 10 ? number.toFixed(2) : number.toFixed(1);
  cell.node.style.background = `rgb(${colour.map(Math.round).join(" ")})`;
  cell.number.textContent = width < WRITTEN_FROM ? "" : written;
  cell.number.style.color = contrast(colour, BLACK) >= contrast(colour, WHITE) ? "black" : "white";
}

/** How well two colours can be told apart (WCAG 2.2): from 1 to 21. */
function contrast(one, other) {
  const [low, high] = [one, other].map(luminance).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour) {
  const [red, green, blue] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Mark the chosen head, and let the Tab key come to the one that was last looked at. */
export function markAtlas(atlas) {
  const chosen = `${atlas.chosen.layer} ${atlas.chosen.head}`;
  const reached = atlas.cells.has(atlas.reached) ? atlas.reached : chosen;
  for (const [name, {node}] of atlas.cells) {
    node.setAttribute("aria-selected", String(name === chosen));
    node.setAttribute("tabindex", name === reached ? "0" : "-1");
  }
}

/** The colours that the style sheet gives this theme. */
export function readColours(root) {
  const style = getComputedStyle(root);
  const value = (name) => style.getPropertyValue(`--av-${name}`).trim();
  const [background, blocked] = ["background", "blocked"].map((name) => channels(value(name)));
  return {background, blocked, ramp: value("ramp").split(/\s+/).map(channels)};
}

/** The head that a key leads to from the one that has the focus, or null. */
export function reachedBy(atlas, event) {
  const from = atlas.cells.get(atlas.reached);
  const to = from && headByKey(atlas.header.layers, from, event.key);
  return to ? atlas.cells.get(`${to.layer} ${to.head}`) : null;
}
