// Where the cells of all heads stand, so that they fill their place: layers down and heads across or the other way
// round, and in as many blocks beside each other, or bands below each other, as make them largest.

/** A place for cells, in pixels; `tallest` is how much higher than wide a cell may be, `broadest` how much wider than
 * high, `largest` either.
 * @typedef {{width: number, height: number, tallest?: number, broadest?: number, largest?: number}} Place */

/** How all heads stand: `lines` layers in each of `blocks`, one below the other, or, where `turned`, beside each other. The
 * last block may have fewer layers; `heads` are those of the layer that has most, `width` and `height` are a cell's, `gutter` is the room for what stands beside a layer, `gap`
 * lies between cells, in pixels, and of `every` so many numbers one is written, so that they can be read.
 * @typedef {{turned: boolean, blocks: number, lines: number, heads: number, width: number, height: number, gap: number,
 *   gutter: number, every: {across: number, down: number}}} Layout */

/** The room between cells and beside them: `gutter` for the numbers at the side, `heading` above, `between` blocks. */
const ROOMS = {gutter: 20, heading: 16, between: 10};
const LARGEST = 64;
// A cell is at most so much wider than high.
const BROADEST = 1.6;
// The smallest that a cell may be, in pixels; of more heads than `many` it is `least`: they stay in sight.
const SMALLEST = {usual: 18, many: 1500, least: 8};
const IN_PARTS = 6;
// Layers down and heads across, in one block, is what everybody expects: another way has to be larger by this.
const WORTH = 1.1;
// What a number takes, with the room beside it.
const WRITTEN = {width: 18, height: 12};
// How wide a letter is there.
const LETTER = 5.8;

/** @typedef {"beside" | "wider" | "below"} Seat */

// How wide the column of the grid is in each seat; explorer.css makes them so.
/** @type {{from: number, seats: {seat: Seat, of: (width: number) => number}[]}[]} */
const SEATS = [
  {
    from: 1060,
    seats: [
      {seat: "beside", of: (width) => ((width - 52) * 10) / 25.2},
      {seat: "wider", of: () => 660},
    ],
  },
  {
    from: 720,
    seats: [
      {seat: "beside", of: (width) => (width - 26) / 2},
      {seat: "wider", of: (width) => (width - 26) * 0.63},
      {seat: "below", of: (width) => width},
    ],
  },
];

/** @param {{heads: number}[]} layers */
export function mostHeads(layers) {
  return Math.max(...layers.map(({heads}) => heads));
}

/** The smallest that a cell of so many heads may be where there is room, in pixels.
 * @param {{heads: number}[]} layers */
export function smallestCell(layers) {
  const count = layers.reduce((sum, {heads}) => sum + heads, 0);
  return count > SMALLEST.many ? SMALLEST.least : SMALLEST.usual;
}

/** The layout with the largest cells. Where none has cells that are large enough, it is higher than its place, but
 * never wider; where the width alone makes them too small, they are as large as it lets them be.
 * @param {{heads: number, called?: string}[]} layers @param {Place} place @returns {Layout} */
export function layHeads(layers, {width, height, tallest = 1, broadest = BROADEST, largest = LARGEST}) {
  const smallest = smallestCell(layers);
  const most = {tallest, broadest, largest};
  const gutter = gutterOf(layers);
  // What layers are called has no room above them.
  const possible = waysOf(layers.length, mostHeads(layers)).filter(({turned}) => !turned || gutter === ROOMS.gutter);
  const ways = possible.map((one) => ({...one, gutter})).map((way) => fit(way, width, height, smallest, most));
  const shorter = (/** @type {Layout} */ one) => Math.min(one.width, one.height);
  // Of those that have to grow, what grows least.
  const over = (/** @type {Layout} */ one) => Math.max(0, tableSize(one).height - height);
  const better = (/** @type {Layout} */ one, /** @type {Layout} */ other) => {
    if (shorter(one) < smallest || shorter(other) < smallest) return shorter(one) > WORTH * shorter(other);
    if (over(one) > 0 || over(other) > 0) return over(one) < over(other);
    return one.width * one.height > WORTH * WORTH * other.width * other.height;
  };
  return ways.reduce((best, one) => (better(one, best) ? one : best));
}

/** The room for what stands beside layers, in pixels. @param {{called?: string}[]} layers */
function gutterOf(layers) {
  const longest = Math.max(...layers.map(({called = ""}) => called.length));
  return longest ? Math.ceil(longest * LETTER) + 8 : ROOMS.gutter;
}

/** How wide and high all cells are with their numbers, in pixels. @param {Layout} layout */
export function tableSize(layout) {
  const {across, down, beside, below} = countsOf(layout);
  const {width, height, gap, gutter} = layout;
  return {
    width: beside * (gutter + across * (width + gap)) + (beside - 1) * ROOMS.between,
    height: below * (ROOMS.heading + down * (height + gap)) + (below - 1) * ROOMS.between,
  };
}

/** The tracks of a CSS grid: numbers first, then cells, for each block. @param {Layout} layout */
export function tracksOf(layout) {
  const {across, down, beside, below} = countsOf(layout);
  const {width, height, gap, gutter} = layout;
  return {
    columns: tracks(beside, gutter, `repeat(${across}, ${width + gap}px)`),
    rows: tracks(below, ROOMS.heading, `repeat(${down}, ${height + gap}px)`),
  };
}

/** @param {number} blocks
 * @param {number} numbers  how much room they have before the cells
 * @param {string} cells */
function tracks(blocks, numbers, cells) {
  return Array.from({length: blocks}, (_, block) => `${numbers + (block ? ROOMS.between : 0)}px ${cells}`).join(" ");
}

/** The row and the column of a head in the CSS grid, counted from 1; of -1 those of its layer's number, or its head's.
 * @param {Layout} layout @param {number} layer @param {number} head */
export function placeOf({turned, lines, heads}, layer, head) {
  const block = Math.floor(layer / lines);
  const [line, along] = [2 + (layer % lines), 2 + head];
  return turned ? {row: block * (heads + 1) + along, column: line} : {row: line, column: block * (heads + 1) + along};
}

/** Where the numbers of heads stand: once for each block. @param {Layout} layout @param {number} head */
export function headingPlaces(layout, head) {
  return Array.from({length: layout.blocks}, (_, block) => {
    const {row, column} = placeOf(layout, block * layout.lines, head);
    return layout.turned ? {row, column: 1} : {row: 1, column};
  });
}

/** Where the grid of heads stands in an explorer that is `width` pixels wide, by how much room its cells need: in the
 * column "beside" the matrix, in a "wider" one, or, in a row of its own, "below" it. One that is too high in each of them
 * stands where it is lowest.
 * @param {{heads: number, called?: string}[]} layers @param {number} width
 * @param {number} height  that it may have beside the matrix
 * @returns {Seat} */
export function seatOf(layers, width, height) {
  const seats = SEATS.find(({from}) => width >= from)?.seats ?? [];
  const heights = seats.map(({of}) => tableSize(layHeads(layers, {width: of(width), height})).height);
  const fits = heights.findIndex((one) => one <= height);
  return seats[fits < 0 ? heights.indexOf(Math.min(...heights)) : fits]?.seat ?? "beside";
}

/** @param {Layout} layout */
function countsOf({turned, blocks, lines, heads}) {
  return turned
    ? {across: lines, down: heads, beside: 1, below: blocks}
    : {across: heads, down: lines, beside: blocks, below: 1};
}

/** Every way to stand, the most expected first. @param {number} layers @param {number} heads */
function waysOf(layers, heads) {
  const blocks = Array.from({length: Math.min(IN_PARTS, layers)}, (_, more) => more + 1);
  return blocks.flatMap((count) => {
    const lines = Math.ceil(layers / count);
    // As many as lines of that length need.
    const needed = Math.ceil(layers / lines);
    return needed < count ? [] : [false, true].map((turned) => ({turned, blocks: count, lines, heads}));
  });
}

/** @param {{turned: boolean, blocks: number, lines: number, heads: number, gutter: number}} way @param {number} width
 * @param {number} height @param {number} smallest @param {{tallest: number, broadest: number, largest: number}} most
 * @returns {Layout} */
function fit(way, width, height, smallest, {tallest, broadest, largest}) {
  const none = {...way, width: 0, height: 0, gap: 0, every: {across: 1, down: 1}};
  const {across, down, beside, below} = countsOf(none);
  const bare = tableSize(none);
  const pitches = [(width - bare.width) / (beside * across), (height - bare.height) / (below * down)];
  const gap = [3, 2].find((one) => Math.min(...pitches) >= Math.max(smallest, 18) + one) ?? 1;
  const [wide, high] = pitches.map((pitch) => Math.max(1, Math.min(largest, Math.floor(pitch - gap))));
  // What doesn't fit grows downwards.
  const least = Math.min(smallest, wide);
  const cell = {width: Math.min(wide, Math.floor(broadest * Math.max(high, least))), height: Math.max(high, least)};
  cell.height = Math.min(cell.height, Math.max(least, Math.floor(tallest * cell.width)));
  return {
    ...none,
    ...cell,
    gap,
    every: {across: everyNth(cell.width + gap, WRITTEN.width), down: everyNth(cell.height + gap, WRITTEN.height)},
  };
}

/** @param {number} pitch @param {number} needed */
function everyNth(pitch, needed) {
  return [1, 2, 5, 10].find((step) => step * pitch >= needed) ?? 20;
}
