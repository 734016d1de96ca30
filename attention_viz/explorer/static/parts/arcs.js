// Curves between tokens: the query's colour at the token that looks, the key's at the one looked at.

import {significant} from "../data/mixing.js";
import {LEAST_NUMBER, rgb, weightText} from "../data/scale.js";

/** @import {Colours} from "./style.js" */

/** A link: where the query and the key stand, how heavy it is, and how strong it looks, 0 to 1.
 * @typedef {{from: number, to: number, weight: number, place: number}} Edge */

/** Where arcs are drawn: over the line at `y`, upwards (-1) or downwards (1), over a height of `room`.
 * @typedef {object} ArcPlace
 * @property {number} y
 * @property {1 | -1} up
 * @property {number} room
 * @property {Readonly<Colours>} colours
 * @property {string} font
 * @property {boolean} faint  in grey: what is there beside what is told
 * @property {boolean} [signed]  in the colours of plus and minus, in place of those of query and key
 * @property {boolean} [lifted]  numbers over the arcs rather than on them
 * @property {boolean} [bold]  what is told: from the query's colour over the accent to the key's */

const WIDEST = 7;
// Of the link that is told: of next to no weight, and of all of it.
const [THIN, BOLD] = [1.5, 4.5];
// A link leaves a token on one side of its middle and arrives on the other, and to the left it flies lower: of two
// tokens that look at each other both arcs can be seen.
const ASIDE = 4;
const LOWER = 0.72;

// Numbers at arcs: how many at most, and the rim in the background's colour around each, in pixels.
const MOST_NUMBERS = 6;
const HALO = 4;
// How far numbers are above their arcs.
const LIFT = 4;

/** Draw curves on a canvas, the heaviest last.
 * @param {CanvasRenderingContext2D} context @param {Edge[]} edges @param {ArcPlace} where */
export function drawArcs(context, edges, {y, up, room, colours, faint, signed = false, bold = false}) {
  for (const {from, to, place, weight} of [...edges].reverse()) {
    const {height, reach} = arcShape(from, to, room);
    const [first, last] = [from - reach, to + reach];
    context.beginPath();
    context.moveTo(first, y);
    context.bezierCurveTo(first, y + up * height, last, y + up * height, last, y);
    strokeEdge(context, [first, y, last, y], place, {colours, faint, bold, sign: signed ? Math.sign(weight) : 0});
  }
  context.globalAlpha = 1;
}

/** Draw curves between a line of keys at `top` and a line of queries at `bottom`.
 * @param {CanvasRenderingContext2D} context @param {Edge[]} edges
 * @param {{top: number, bottom: number, colours: Readonly<Colours>, faint: boolean, bold?: boolean}} where */
export function drawLinks(context, edges, {top, bottom, colours, faint, bold = false}) {
  const middle = (top + bottom) / 2;
  for (const {from, to, place} of [...edges].reverse()) {
    context.beginPath();
    context.moveTo(from, bottom);
    context.bezierCurveTo(from, middle, to, middle, to, top);
    strokeEdge(context, [from, bottom, to, top], place, {colours, faint, bold});
  }
  context.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} context @param {[fromX: number, fromY: number, toX: number, toY: number]} ends
 * @param {number} place @param {{colours: Readonly<Colours>, faint: boolean, bold: boolean, sign?: number}} how  sign: 0 where there is none */
function strokeEdge(context, [fromX, fromY, toX, toY], place, {colours, faint, bold, sign = 0}) {
  if (!colours.query || !colours.key) return; // drawn before the style has come; it is drawn again then
  const {differences} = colours;
  if (sign) context.strokeStyle = rgb(sign < 0 ? differences[0] : differences[differences.length - 1]);
  else context.strokeStyle = faint ? colours.muted : shaded(context, [fromX, fromY, toX, toY], colours, bold);
  context.lineCap = bold ? "round" : "butt";
  context.lineWidth = bold
    ? THIN + (BOLD - THIN) * Math.sqrt(place)
    : 0.75 + (WIDEST - 0.75) * place * (faint ? 0.3 : 1);
  context.globalAlpha = bold ? 1 : faint ? 0.08 + 0.3 * place : 0.9 * (0.12 + 0.88 * Math.sqrt(place));
  context.stroke();
}

/** From the query's colour to the key's.
 * @param {CanvasRenderingContext2D} context @param {[fromX: number, fromY: number, toX: number, toY: number]} ends
 * @param {Readonly<Colours>} colours @param {boolean} bold */
function shaded(context, [fromX, fromY, toX, toY], {query, accent, key}, bold) {
  const gradient = context.createLinearGradient(fromX, fromY, fromX === toX && fromY === toY ? toX + 1 : toX, toY);
  gradient.addColorStop(0, query);
  // Straight from one to the other is brown.
  if (bold) gradient.addColorStop(0.5, accent);
  gradient.addColorStop(1, key);
  return gradient;
}

/** @param {number} from @param {number} to @param {number} room */
function arcShape(from, to, room) {
  const distance = Math.abs(to - from);
  // A cubic curve rises to three quarters of its control points.
  const height = (room * (0.3 + 0.7 * (1 - Math.exp(-distance / 260)))) / 0.75;
  return {height: to < from ? height * LOWER : height, reach: from === to ? 11 : ASIDE};
}

/** Write the heaviest weights at the top of their arcs, leaving out those that would lie over another.
 * @param {CanvasRenderingContext2D} context @param {Edge[]} edges @param {ArcPlace} where */
export function drawNumbers(context, edges, {y, up, room, colours, font, signed = false, lifted = false}) {
  context.font = font;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const labels = edges
    .filter(({weight}) => signed || weight >= LEAST_NUMBER)
    .map(({from, to, weight}) => {
      const text = signed ? significant(weight) : weightText(weight);
      const {width, fontBoundingBoxAscent, fontBoundingBoxDescent} = context.measureText(text);
      const height = fontBoundingBoxAscent + fontBoundingBoxDescent;
      return {
        text,
        x: (from + to) / 2,
        y: y + up * (arcShape(from, to, room).height * 0.75 + (lifted ? height / 2 + LIFT : 0)),
        width: width + HALO,
        height,
      };
    });
  for (const label of withoutOverlaps(labels, MOST_NUMBERS)) {
    // On a piece of the page: an arc is wider than any halo.
    context.fillStyle = colours.background;
    context.fillRect(label.x - label.width / 2, label.y - label.height / 2, label.width, label.height);
    context.fillStyle = colours.ink;
    context.fillText(label.text, label.x, label.y);
  }
}

/** A text of some size around its middle.
 * @typedef {{text: string, x: number, y: number, width: number, height: number}} Label */

/** The first labels that lie over none before them.
 * @param {readonly Label[]} labels the most important first
 * @param {number} most @returns {Label[]} */
export function withoutOverlaps(labels, most) {
  /** @type {Label[]} */
  const placed = [];
  for (const label of labels) {
    if (placed.length === most) break;
    if (!placed.some((other) => overlap(label, other))) placed.push(label);
  }
  return placed;
}

/** @param {Label} one @param {Label} other */
function overlap(one, other) {
  return (
    Math.abs(one.x - other.x) < (one.width + other.width) / 2 &&
    Math.abs(one.y - other.y) < (one.height + other.height) / 2
  );
}
