// The cells of the atlas: each head as a colour with its number, or as a small picture of its pattern.

import {element, fitCanvas} from "../parts/element.js";
import {hatchingOf, readStyle} from "../parts/style.js";
import {coloured, sample} from "../data/raster.js";
import {channels, colourTable, inkOn, onRamp, rgb} from "../data/scale.js";
import {fullOf, colouringNumber, isFew, percent, wordsOf} from "./numbers.js";
import {paintRole, roleOf} from "./roles.js";

/** @import {Card} from "./card.js" */
/** @import {Cards} from "./cards.js" */
/** @import {Role} from "./roles.js" */
/** @import {Place} from "../data/payload.js" */
/** @import {Hatching, Pattern} from "../data/raster.js" */
/** @import {Colour} from "../data/scale.js" */
/** @import {Mounted} from "../hosts/component.js" */
/** @import {Message} from "../hosts/hosting.js" */
/** @import {HeadCell, HeadGrid, HeadPlace} from "../heads/cells.js" */

/**
 * What stands before the thumbnails, as `pack_atlas` in atlas_payload.py writes it. Numbers are in the order of heads,
 * null where there is nothing to count; `pooled` is how many rows and columns lie under a cell of a thumbnail.
 * @typedef {object} AtlasHeader
 * @property {{label: string, number: number, heads: number}[]} layers
 * @property {string[]} queries
 * @property {string[]} keys
 * @property {[down: number, across: number]} pooled
 * @property {number[]} tops  what each head's deepest colour stands for
 * @property {{name: string, label: string, unit: string}[]} metrics
 * @property {Record<string, (number | null)[]>} numbers
 * @property {Record<string, (number | null)[]> | null} spreads
 * @property {Record<string, number[]>} counts  behind how many tokens each mean stands
 * @property {Record<string, number>} fulls
 * @property {Role[]} roles
 * @property {number[]} role  the place of each head's role among them
 * @property {(number | null)[]} score  the share that says so
 * @property {Place} plane
 */

/**
 * What the page shows now: a head, and all heads by their roles, as patterns, by a metric, or by how far the output moves
 * without each; the role whose heads stand out; the heads that link the chosen pair most; and the key of the part of the
 * page that tells of a head, where one that is pointed at is told of instead.
 * @typedef {Message & {view: "roles" | "patterns" | "colours" | "silenced", metric: string, role: string | null,
 *   linking: [layer: number, head: number][], effects: (number | null)[], over: string}} AtlasMessage
 */

/** The cell of a head, and its pattern; `full` is what its deepest colour stands for.
 * @typedef {HeadCell & {full: number, pattern: Pattern, canvas: HTMLCanvasElement, number: HTMLElement}} AtlasCell */

/** @typedef {{background: Colour, ink: Colour, ramp: Colour[], roles: Colour[], hatching: Hatching}} AtlasColours */

/**
 * What a drawn atlas has: it is drawn once both the thumbnails and the page's choice have come.
 * @typedef {object} Drawing
 * @property {AtlasHeader} header
 * @property {AtlasMessage} message
 * @property {AtlasColours} colours
 */

/**
 * An atlas on the page; `room` is how high it may be, in pixels.
 * @typedef {Mounted & AtlasParts} Atlas
 *
 * @typedef {object} AtlasParts
 * @property {HTMLElement} title
 * @property {HTMLElement} legend
 * @property {HeadGrid<AtlasCell>} grid
 * @property {number} room
 * @property {Card} card
 * @property {Cards} cards
 * @property {AtlasHeader | null} header
 * @property {AtlasMessage | null} message
 * @property {Drawing | null} drawing
 * @property {HeadPlace | null} chosen
 * @property {(place: HeadPlace) => void} open  in Explore
 */

const BLOCKED = 255;
const LEVELS = 254;
const WRITTEN_FROM = 24;
// Of a model with few layers, cells are higher than wide, so that they fill their place.
const TALLEST = 1.6;
const WIDEST = 76;
// The line above them, with the legend; and how high they may be with the cards of roles below them, in pixels.
const TITLE = 44;
const ROLES = 252;
// Of a model with more rows than these the atlas grows by them, and the cards fold to their names.
const MOST_ROWS = 28;
const ROW = 9;
const VALUES = Float64Array.from({length: BLOCKED + 1}, (_, level) => level / LEVELS);

/** Build a cell for each head into the atlas's grid.
 * @param {Atlas} atlas @param {AtlasHeader} header
 * @param {Uint8Array} levels  of all thumbnails */
export function buildAtlas(atlas, {layers, tops, queries, keys}, levels) {
  const size = queries.length * keys.length;
  atlas.grid.build(layers, (cell) => {
    const canvas = element("canvas", {"aria-hidden": "true"});
    const number = element("span", {class: "av-written"});
    cell.node.append(canvas, number);
    const pattern = readPattern(levels.subarray(cell.place * size, (cell.place + 1) * size), queries.length);
    return {...cell, full: tops[cell.place], pattern, canvas, number};
  });
}

/** The packed levels as the explorer's rasters read a head: whole numbers (key, query), and which are blocked.
 * @param {Uint8Array} levels @param {number} queries @returns {Pattern} */
function readPattern(levels, queries) {
  const blocked = levels.includes(BLOCKED) ? Uint8Array.from(levels, (level) => (level === BLOCKED ? 1 : 0)) : null;
  return {weights: levels, blocked, queries};
}

/** A head's pattern as an image of that many pixels.
 * @param {Drawing} drawing @param {AtlasCell} cell @param {number} width @param {number} height */
export function drawPattern({header, colours}, cell, width, height) {
  const {queries, keys} = header;
  const [rows, columns] = [queries, keys].map(({length}) => Int32Array.from({length}, (_, place) => place));
  const pixels = sample(cell.pattern, rows, columns, width, height);
  return coloured(pixels, width, height, colourTable(VALUES, "linear", 1, colours.ramp), colours.hatching);
}

/** How many rows an atlas has at least: the longer side runs across. @param {{heads: number}[]} layers */
function rowsOf(layers) {
  return Math.min(layers.length, Math.max(0, ...layers.map(({heads}) => heads)));
}

/** Whether an atlas has so many rows that the cards below it fold to their names. @param {{heads: number}[]} layers */
export function foldsCards(layers) {
  return rowsOf(layers) > MOST_ROWS;
}

/** How high the atlas of roles is, in pixels, with the cards below it. @param {{heads: number}[]} layers */
export function rolesRoom(layers) {
  return foldsCards(layers) ? Math.max(ROLES, ROW * rowsOf(layers) + 20) : ROLES;
}

/** Fit the cells to their place, and paint them. @param {Atlas} atlas @param {Drawing} drawing */
export function paintAtlas(atlas, drawing) {
  const {header, message} = drawing;
  const room = message.view === "roles" ? rolesRoom(header.layers) : atlas.room - TITLE;
  const place = {width: atlas.root.clientWidth, height: room, tallest: TALLEST, broadest: 2, largest: WIDEST};
  const {width, height} = atlas.grid.lay(place);
  const linking = new Set(message.linking.map(([layer, head]) => `${layer} ${head}`));
  for (const [name, cell] of atlas.grid.cells) {
    const patterns = message.view === "patterns";
    cell.node.setAttribute("aria-label", `Layer ${cell.layer} head ${cell.head}, ${wordsOf(drawing, cell)}`);
    cell.node.classList.toggle("av-linking", linking.has(name));
    cell.node.classList.toggle("av-dim", message.role !== null && roleOf(header, cell).name !== message.role);
    const counted = header.counts[message.metric]?.[cell.place];
    cell.node.classList.toggle("av-few", message.view === "colours" && isFew(counted));
    cell.canvas.hidden = !patterns;
    cell.number.hidden = patterns;
    if (patterns) paintPattern(drawing, cell, width, height);
    else if (message.view === "roles") paintRole(drawing, cell, width, height);
    else paintColour(drawing, cell, colouringNumber(drawing, cell), width);
  }
}

/** @param {Drawing} drawing @param {AtlasCell} cell @param {number} width @param {number} height */
function paintPattern(drawing, cell, width, height) {
  const context = fitCanvas(cell.canvas, width, height);
  context.putImageData(drawPattern(drawing, cell, cell.canvas.width, cell.canvas.height), 0, 0);
  cell.node.style.background = "";
}

/** @param {Drawing} drawing @param {AtlasCell} cell @param {number | null} number @param {number} width */
function paintColour(drawing, cell, number, width) {
  const {ramp, background} = drawing.colours;
  const silenced = drawing.message.view === "silenced";
  // Most heads move little: by roots, these can be told apart, too.
  const place = (/** @type {number} */ share) => (silenced ? Math.sqrt(share) : share);
  const colour = number === null ? background : onRamp(ramp, place(number / fullOf(drawing)));
  const written =
    number === null ? "" : silenced ? percent(number) : number < 10 ? number.toFixed(2) : number.toFixed(1);
  cell.node.style.background = rgb(colour);
  cell.number.textContent = width < WRITTEN_FROM ? "" : written;
  cell.number.style.color = inkOn(colour);
}

/** The colours that the style sheet gives this theme. @param {HTMLElement} root @returns {AtlasColours} */
export function readColours(root) {
  const {colours} = readStyle(root);
  const [background, ink] = [colours.background, colours.ink].map(channels);
  return {background, ink, ramp: colours.ramp, roles: colours.roles, hatching: hatchingOf(colours, 4, 0.7)};
}
