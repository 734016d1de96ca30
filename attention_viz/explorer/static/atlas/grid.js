// The cells of the atlas: each head as a colour with its number, or as a small picture of its pattern.

import {element, fitCanvas} from "../parts/element.js";
import {hatchingOf, readStyle} from "../parts/style.js";
import {mostHeads} from "../heads/layout.js";
import {coloured, sample} from "../data/raster.js";
import {channels, colourTable, inkOn, onRamp, rgb} from "../data/scale.js";
import {drawLit, photoShape} from "./photo.js";
import {fullOf, colouringNumber, isFew, isSigned, percent, shortNumber, wordsOf} from "./numbers.js";
import {paintRole, roleOf} from "./roles.js";

/** @import {Card} from "./card.js" */
/** @import {Cards} from "./cards.js" */
/** @import {Lights, PackedLights} from "./photo.js" */
/** @import {Role} from "./roles.js" */
/** @import {Place} from "../data/payload.js" */
/** @import {Hatching, Pattern} from "../data/raster.js" */
/** @import {Colour} from "../data/scale.js" */
/** @import {Mounted} from "../hosts/component.js" */
/** @import {Message} from "../hosts/hosting.js" */
/** @import {HeadCell, HeadGrid, HeadLayer, HeadPlace} from "../heads/cells.js" */

/** A number of each head; `mixed` is what it is called in layers without a softmax, where that differs, and `signed`
 * whether it can be below 0.
 * @typedef {{name: string, label: string, unit: string, mixed?: string, signed?: boolean}} Metric */

/** A layer; where there are several streams, its own, and its name and label in the grid; without a softmax its kind and
 * how it is drawn: weights with "signed" sizes, or of all channels what "arrived", by the logarithm of a size down to a
 * ten-thousandth.
 * @typedef {HeadLayer & {number: number, stream?: string, kind?: string, drawn?: "signed" | "arrived",
 *   channels?: boolean}} AtlasLayer */

/**
 * What stands before the thumbnails, as `pack_atlas` in atlas_payload.py writes it. Numbers are in the order of heads,
 * null where there is nothing to count; `pooled` is how many rows and columns lie under a cell of a thumbnail.
 * @typedef {object} AtlasHeader
 * @property {AtlasLayer[]} layers
 * @property {string[]} queries
 * @property {string[]} keys
 * @property {[down: number, across: number]} pooled
 * @property {number[]} tops  what each head's deepest colour stands for
 * @property {Metric[]} metrics
 * @property {Record<string, (number | null)[]>} numbers
 * @property {Record<string, (number | null)[]> | null} spreads
 * @property {Record<string, number[]>} counts  behind how many tokens each mean stands
 * @property {Record<string, number>} fulls
 * @property {Role[]} roles
 * @property {number[]} role  the place of each head's role among them
 * @property {(number | null)[]} score  the share that says so
 * @property {Place} plane
 * @property {Place} [values]  of a short text, all heads' numbers
 * @property {Float32Array} [matrices]  the same, once they are read
 * @property {PackedLights} [photo]  of an image
 * @property {Lights} [lights]  the same, once it is read
 */

/**
 * What the page shows now: a head, and all heads by their roles, as patterns, by a metric, or by how far the output moves
 * without each; the role whose heads stand out; the heads that link the chosen pair most, and what that means in words;
 * and the key of the part of the page that tells of a head, where one that is pointed at is told of instead.
 * @typedef {Message & {view: "roles" | "patterns" | "colours" | "silenced", metric: string, role: string | null,
 *   stream: string, linking: [layer: number, head: number, stream: string][], links: string, over: string}} AtlasMessage
 */

/** How far the output moves without each head, null for those that weren't tried yet.
 * @typedef {Message & {effects: (number | null)[]}} EffectsMessage */

/** The cell of a head, and its pattern; `full` is what its deepest colour stands for.
 * @typedef {HeadCell & {full: number, of: AtlasLayer, pattern: Pattern, canvas: HTMLCanvasElement, number: HTMLElement}} AtlasCell */

/** @typedef {{background: Colour, ink: Colour, query: Colour, ramp: Colour[], differences: Colour[], roles: Colour[],
 *   hatching: Hatching}} AtlasColours */

/**
 * What a drawn atlas has: it is drawn once both the thumbnails and the page's choice have come.
 * @typedef {object} Drawing
 * @property {AtlasHeader} header
 * @property {AtlasMessage} message
 * @property {(number | null)[]} effects
 * @property {AtlasColours} colours
 */

/**
 * An atlas on the page; `room` is how high it may be, in pixels.
 * @typedef {Mounted & AtlasParts} Atlas
 *
 * @typedef {object} AtlasParts
 * @property {HTMLElement} title
 * @property {HTMLElement} legend
 * @property {HTMLElement} marks
 * @property {HeadGrid<AtlasCell>} grid
 * @property {number} room
 * @property {Card} card
 * @property {Cards} cards
 * @property {AtlasHeader | null} header
 * @property {AtlasMessage | null} message
 * @property {(number | null)[]} effects
 * @property {Drawing | null} drawing
 * @property {HeadPlace | null} chosen
 * @property {(cell: AtlasCell) => void} open  in Explore
 */

export const BLOCKED = 255;
export const FULL_LEVEL = 254;
// What nothing is where sizes have signs.
const MIDDLE = 127;
const WRITTEN_FROM = 24;
// From this size on a cell of the roles has its head's pattern, with the role's name; what lies around the pattern.
const [ROOMY, AROUND] = [{width: 200, height: 70}, 14];
// Of a model with few layers, cells are higher than wide, so that they fill their place.
const TALLEST = 1.6;
// Patterns are drawn in cells that are nearly square; a colour with its number has more room.
const [PATTERN, NUMBERED] = [
  {broadest: 3, largest: 132},
  {broadest: 8, largest: 440},
];
// The line above them, with the legend; and how high they may be with the cards of roles below them, in pixels, and
// where one head's cell has this much.
const TITLE = 44;
const [ROLES, MOST_ROLES, LINE] = [252, 312, 25];
// How high they may be, since no cards stand below them.
const PATTERNS = 560;
// Of a model with more rows than these the atlas grows by them, and the cards fold to their names.
const MOST_ROWS = 28;
const ROW = 9;
// Of so few layers and heads, cells have a pattern each, which is as large as can be.
const FEW_ROWS = 4;
const VALUES = Float64Array.from({length: BLOCKED + 1}, (_, level) => level / FULL_LEVEL);

/** Build a cell for each head into the atlas's grid.
 * @param {Atlas} atlas @param {AtlasHeader} header
 * @param {Uint8Array} levels  of all thumbnails */
export function buildAtlas(atlas, {layers, tops, queries, keys}, levels) {
  const size = queries.length * keys.length;
  const owners = layers.flatMap((layer) => Array.from({length: layer.heads}, () => layer));
  atlas.grid.build(layers, (cell) => {
    const canvas = element("canvas", {"aria-hidden": "true"});
    const number = element("span", {class: "av-written"});
    cell.node.append(canvas, number);
    const pattern = readPattern(levels.subarray(cell.place * size, (cell.place + 1) * size), queries.length);
    return {...cell, full: tops[cell.place], of: owners[cell.place], pattern, canvas, number};
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
  const {queries, keys, lights} = header;
  if (lights) return drawLit(lights, cell, colours.query, width, height);
  const [rows, columns] = [queries, keys].map(({length}) => Int32Array.from({length}, (_, place) => place));
  const signed = cell.of.drawn === "signed";
  const pixels = signed
    ? sampleSigned(cell.pattern, rows, columns, width, height)
    : sample(cell.pattern, rows, columns, width, height);
  const table = colourTable(VALUES, "linear", 1, signed ? colours.differences : colours.ramp);
  return coloured(pixels, width, height, table, colours.hatching);
}

/** The cells under each pixel where sizes have signs: their carried part and their taken part each pool as weights do,
 * and the larger one is shown.
 * @param {Pattern} pattern @param {Int32Array} rows @param {Int32Array} columns @param {number} width
 * @param {number} height */
function sampleSigned({weights, blocked, queries}, rows, columns, width, height) {
  const pooled = [1, -1].map((sign) => {
    const part = Uint8Array.from(weights, (level) => Math.max(0, sign * (level - MIDDLE)));
    return sample({weights: part, blocked, queries}, rows, columns, width, height);
  });
  const [carried, taken] = pooled;
  return carried.map((more, at) => (more > MIDDLE ? more : more >= taken[at] ? MIDDLE + more : MIDDLE - taken[at]));
}

/** Whether an atlas has so many rows that the cards below it fold to their names. @param {{heads: number}[]} layers */
export function foldsCards(layers) {
  return mostHeads(layers) > MOST_ROWS;
}

/** How high the atlas of roles is, in pixels, with the cards below it. @param {{heads: number}[]} layers */
export function rolesRoom(layers) {
  const heads = mostHeads(layers);
  if (heads <= FEW_ROWS && layers.length <= FEW_ROWS) return MOST_ROLES;
  return foldsCards(layers) ? ROW * heads + 20 : Math.min(MOST_ROLES, Math.max(ROLES, LINE * heads + 16));
}

/** Fit the cells to their place, and paint them. @param {Atlas} atlas @param {Drawing} drawing */
export function paintAtlas(atlas, drawing) {
  const {header, message} = drawing;
  const isPatterns = message.view === "patterns";
  const room = message.view === "roles" ? rolesRoom(header.layers) : isPatterns ? PATTERNS : atlas.room - TITLE;
  const shape = isPatterns ? {...PATTERN, ...photoShape(header.lights)} : NUMBERED;
  const place = {width: atlas.root.clientWidth, height: room, tallest: TALLEST, ...shape};
  const {width, height} = atlas.grid.lay(place);
  const linking = new Set(message.linking.map(([layer, head, stream]) => `${stream} ${layer} ${head}`));
  for (const cell of atlas.grid.cells.values()) {
    cell.node.setAttribute("aria-label", `${placeWords(cell)}, ${wordsOf(drawing, cell)}`);
    const {stream = message.stream} = cell.of;
    cell.node.classList.toggle("av-linking", linking.has(`${stream} ${cell.layer} ${cell.head}`));
    cell.node.classList.toggle("av-dim", message.role !== null && roleOf(header, cell).name !== message.role);
    const counted = header.counts[message.metric]?.[cell.place];
    cell.node.classList.toggle("av-few", message.view === "colours" && isFew(counted));
    const isRoomy = message.view === "roles" && width >= ROOMY.width && height >= ROOMY.height;
    cell.node.classList.toggle("av-roomy", isRoomy);
    cell.canvas.hidden = !isPatterns && !isRoomy;
    cell.number.hidden = isPatterns;
    if (isPatterns) paintPattern(drawing, cell, width, height);
    if (isRoomy) paintPattern(drawing, cell, height - AROUND, height - AROUND);
    if (message.view === "roles") paintRole(drawing, cell, width, height, isRoomy);
    else if (!isPatterns) paintColour(drawing, cell, colouringNumber(drawing, cell), width);
  }
}

/** Where a head is, in words; of a layer with a matrix per channel, the layer alone.
 * @param {AtlasCell} cell @param {string} between */
export function placeWords({layer, head, of}, between = " ") {
  const {kind} = of;
  const own = of.channels ? "all channels" : `head ${head}`;
  return kind ? `Layer ${layer} \u00b7 ${kind},${between}${own}` : `Layer ${layer}${between}${own}`;
}

/** @param {Drawing} drawing @param {AtlasCell} cell @param {number} width @param {number} height */
function paintPattern(drawing, cell, width, height) {
  const context = fitCanvas(cell.canvas, width, height);
  context.putImageData(drawPattern(drawing, cell, cell.canvas.width, cell.canvas.height), 0, 0);
  cell.node.style.background = "";
}

/** @param {Drawing} drawing @param {AtlasCell} cell @param {number | null} number @param {number} width */
function paintColour(drawing, cell, number, width) {
  const {background, differences} = drawing.colours;
  const silenced = drawing.message.view === "silenced";
  const signed = isSigned(drawing);
  const ramp = signed ? differences : drawing.colours.ramp;
  // Most heads move little: by roots, these can be told apart, too.
  const place = (/** @type {number} */ share) => (silenced ? Math.sqrt(share) : signed ? (1 + share) / 2 : share);
  const colour = number === null ? background : onRamp(ramp, place(number / fullOf(drawing)));
  const written = number === null ? "" : silenced ? percent(number) : shortNumber(number);
  cell.node.style.background = rgb(colour);
  cell.number.textContent = width < WRITTEN_FROM ? "" : written;
  cell.number.style.color = inkOn(colour);
}

/** The colours that the style sheet gives this theme. @param {HTMLElement} root @returns {AtlasColours} */
export function readColours(root) {
  const {colours} = readStyle(root);
  const [background, ink, query] = [colours.background, colours.ink, colours.query].map(channels);
  const {differences} = colours;
  return {
    background,
    ink,
    query,
    differences,
    ramp: colours.ramp,
    roles: colours.roles,
    hatching: hatchingOf(colours, 4, 0.7),
  };
}
