// Where the cells of all heads stand: layers from left to right, as the model runs, and heads down. Where one band of
// all layers would have cells that are too small, there are several, one below the other.

/** A place for cells, in pixels; `tallest` is how much higher than wide a cell may be, `broadest` how much wider than
 * high, `largest` either.
 * @typedef {{width: number, height: number, tallest?: number, broadest?: number, largest?: number}} Place */

/** How all heads stand: `lines` layers beside each other in each of `bands`; the last one may have fewer. `heads` are
 * those of the layer that has most, `width` and `height` are a cell's, `gap` lies between cells, in pixels, and of
 * `every` so many numbers one is written, so that they can be read.
 * @typedef {{bands: number, lines: number, heads: number, width: number, height: number, gap: number,
 *   every: {across: number, down: number}}} Layout */

/** The room between cells and beside them: `gutter` for the heads' numbers, `heading` for the layers', `between` bands. */
const ROOMS = {gutter: 20, heading: 16, between: 10};
const LARGEST = 96;
// A cell is at most so much wider than high.
const BROADEST = 1.6;
// The smallest that a cell may be, in pixels; of more heads than `many` it is `least`: they stay in sight.
const SMALLEST = {usual: 18, many: 1500, least: 8};
const MOST_BANDS = 6;
// What a number takes, with the room beside it.
const WRITTEN = {width: 18, height: 12};

/** @typedef {"beside" | "wider" | "below"} Seat */

// How wide the grid may be in each seat, and from which size of its cells on it is at ease there, in pixels.
/** @type {{from: number, eases: number, seats: {seat: Seat, of: (width: number) => number}[]}[]} */
const SEATS = [
  {
    from: 1060,
    eases: 22,
    seats: [
      {seat: "beside", of: (width) => (width - 52) * 0.4},
      {seat: "wider", of: (width) => Math.max(660, width * 0.5)},
    ],
  },
  {
    from: 720,
    eases: 0,
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

/** The layout with the fewest bands whose cells are large enough. Where none has such, the grid is higher than its
 * place, as little as can be, but never wider; where the width alone makes cells too small, they are as large as it lets
 * them be.
 * @param {{heads: number}[]} layers @param {Place} place @returns {Layout} */
export function layHeads(layers, {width, height, tallest = 1, broadest = BROADEST, largest = LARGEST}) {
  const smallest = smallestCell(layers);
  const ways = bandsOf(layers.length, mostHeads(layers)).map((way) =>
    fit(way, width, height, smallest, {tallest, broadest, largest}),
  );
  const over = (/** @type {Layout} */ one) => Math.max(0, tableSize(one).height - height);
  const better = (/** @type {Layout} */ one, /** @type {Layout} */ other) => {
    if (other.width < smallest) return one.width > other.width;
    return over(one) < over(other);
  };
  return ways.reduce((best, one) => (better(one, best) ? one : best));
}

/** How wide and high all cells are with their numbers, in pixels. @param {Layout} layout */
export function tableSize({bands, lines, heads, width, height, gap}) {
  return {
    width: ROOMS.gutter + lines * (width + gap),
    height: bands * (ROOMS.heading + heads * (height + gap)) + (bands - 1) * ROOMS.between,
  };
}

/** The tracks of a CSS grid: numbers first, then cells, for each band. @param {Layout} layout */
export function tracksOf({bands, lines, heads, width, height, gap}) {
  const band = (/** @type {unknown} */ _, /** @type {number} */ at) =>
    `${ROOMS.heading + (at ? ROOMS.between : 0)}px repeat(${heads}, ${height + gap}px)`;
  return {
    columns: `${ROOMS.gutter}px repeat(${lines}, ${width + gap}px)`,
    rows: Array.from({length: bands}, band).join(" "),
  };
}

/** The row and the column of a head in the CSS grid, counted from 1; of -1 those of its layer's number.
 * @param {Layout} layout @param {number} layer @param {number} head */
export function placeOf({lines, heads}, layer, head) {
  return {row: Math.floor(layer / lines) * (heads + 1) + 2 + head, column: 2 + (layer % lines)};
}

/** Where the number of a head stands: once for each band. @param {Layout} layout @param {number} head */
export function headingPlaces(layout, head) {
  return Array.from({length: layout.bands}, (_, band) => ({...placeOf(layout, band * layout.lines, head), column: 1}));
}

/** Where the grid of heads stands in an explorer that is `width` pixels wide, and how wide it may be there: in the
 * column "beside" the matrix, in a "wider" one, or, in a row of its own, "below" it. One that is too high in each of them
 * stands where it is lowest.
 * @param {{heads: number}[]} layers @param {number} width
 * @param {number} height  that it may have beside the matrix
 * @returns {{seat: Seat, width: number}} */
export function seatOf(layers, width, height) {
  const {seats, eases} = SEATS.find(({from}) => width >= from) ?? {seats: [], eases: 0};
  const laid = seats.map(({seat, of}) => {
    const layout = layHeads(layers, {width: of(width), height});
    return {seat, width: of(width), cell: Math.min(layout.width, layout.height), high: tableSize(layout).height};
  });
  const fitting = laid.filter(({high}) => high <= height);
  const [lowest] = [...laid].sort((one, other) => one.high - other.high);
  const best = fitting.find(({cell}) => cell >= eases) ?? fitting[0] ?? lowest ?? {seat: "beside", width};
  return {seat: best.seat, width: best.width};
}

/** Every number of bands, with as many layers in each as that needs. @param {number} layers @param {number} heads */
function bandsOf(layers, heads) {
  const counts = Array.from({length: Math.min(MOST_BANDS, layers)}, (_, more) => more + 1);
  return counts.flatMap((bands) => {
    const lines = Math.ceil(layers / bands);
    return Math.ceil(layers / lines) < bands ? [] : [{bands, lines, heads}];
  });
}

/** @param {{bands: number, lines: number, heads: number}} way @param {number} width @param {number} height
 * @param {number} smallest @param {{tallest: number, broadest: number, largest: number}} most @returns {Layout} */
function fit(way, width, height, smallest, {tallest, broadest, largest}) {
  const none = {...way, width: 0, height: 0, gap: 0, every: {across: 1, down: 1}};
  const bare = tableSize(none);
  const pitches = [(width - bare.width) / way.lines, (height - bare.height) / (way.bands * way.heads)];
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
