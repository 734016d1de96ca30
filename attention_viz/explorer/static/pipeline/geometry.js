// Where the parts of the pipeline stand: from left to right, or one below the other on a narrow screen.

/** Places in pixels.
 * @typedef {object} Places
 * @property {boolean} narrow
 * @property {number} width
 * @property {number} height
 * @property {number} top  where vectors and lanes begin
 * @property {number} room  how high the vectors are
 * @property {Span} entering  what enters the layer
 * @property {Span} factors  query, key, and their products
 * @property {Column} sum  the terms, and what becomes of their sum
 * @property {Column} row  the row before and after the softmax
 * @property {Column} values
 * @property {Span & {top: number, room: number}} joined
 * @property {Span & {top: number, room: number}} rest  what follows the attention
 * @property {number} lane  how high a lane is
 * @property {number} term  how high a term of the sum is */

/** @typedef {{x: number, width: number}} Span */
/** @typedef {Span & {top: number}} Column */

// The width for which the columns are drawn; they grow with the screen.
const DRAWN = 1312;
const NARROW = 1180;
// What stands above and below the drawing on the first screen; the same numbers are in pipeline.css.
export const AROUND = 326;
const [LEAST, MOST, BELOW] = [536, 760, 34];
// On a narrow screen the vectors' titles stand below that of what enters.
const [TOP, TOP_BELOW] = [40, 60];

/** What has to fit: lanes, terms of the sum, how high each step of the score is, and how high the rest of the layer is
 * on a narrow screen.
 * @typedef {{lanes: number, terms: number, steps: number[], rest: number}} Counts */

/** @param {number} width  of the drawing
 * @param {number} screen  how high the screen is
 * @param {{d_k: number}} header @param {Counts} counts @returns {Places} */
export function placesFor(width, screen, header, counts) {
  return width < NARROW ? below(width, header, counts) : beside(width, screen, counts);
}

/** @param {number} width @param {number} screen @param {Counts} counts @returns {Places} */
function beside(width, screen, {lanes, terms, steps}) {
  const scale = width / DRAWN;
  const room = Math.max(LEAST, Math.min(MOST, screen - AROUND));
  const span = (/** @type {number} */ x, /** @type {number} */ wide) => ({x: x * scale, width: wide * scale, top: TOP});
  // A lone lane is as high as the word "softmax" is long.
  const highest = lanes < 2 ? 64 : (44 * room) / LEAST;
  return {
    ...{narrow: false, width, height: TOP + room + BELOW, top: TOP, room},
    entering: {x: 0, width: 46},
    factors: span(128, 246),
    sum: span(412, 154),
    row: span(598, 290),
    values: span(904, 124),
    joined: {...span(1060, 88), room},
    rest: {x: 1176 * scale, width: width - 1176 * scale, top: TOP, room},
    lane: Math.min(highest, (room - 116) / lanes),
    term: Math.max(20, Math.min(54, (room - total(steps) - 52) / terms)),
  };
}

/** @param {number} width @param {{d_k: number}} header @param {Counts} counts @returns {Places} */
function below(width, {d_k: count}, {lanes, terms, steps, rest: restRoom}) {
  const [room, lane, term] = [Math.max(count ? 320 : 160, Math.min(count, 128) * 6), lanes < 2 ? 64 : 30, 32];
  const sum = TOP_BELOW + room + 104;
  const row = sum + terms * term + 34 + total(steps) + 126;
  const values = row + lanes * lane + 106;
  const rest = values + lanes * lane + 124 + 92;
  return {
    ...{narrow: true, width, height: rest + restRoom + 20, top: TOP_BELOW, room, lane, term},
    entering: {x: 0, width: 38},
    factors: {x: 62, width: width - 66},
    sum: {x: 4, width: width - 8, top: sum},
    row: {x: 0, width, top: row},
    values: {x: 0, width: width - 104, top: values},
    joined: {x: width - 74, width: 74, top: values, room: lanes * lane + 100},
    rest: {x: 0, width, top: rest, room: restRoom},
  };
}

/** @param {number[]} numbers */
function total(numbers) {
  return numbers.reduce((sum, one) => sum + one, 0);
}
