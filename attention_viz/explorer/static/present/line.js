// The words of a sentence on one line, and links from the one that looks; at first dashed and all alike.

import {inkOn, onRamp, weightText} from "../data/scale.js";
import {svg} from "../parts/element.js";
import {SMALLEST, onLine} from "./room.js";

/** @import {Row} from "./slides.js"
 * @import {Colours} from "../parts/style.js" */

/** What a picture is drawn with: how large it may be, the theme's colours, and which word the class has chosen.
 * @typedef {{width: number, height: number, colours: Colours, mono: string, vote: number | null}} Room */

const [THICKEST, THINNEST, LEAST_TOLD] = [26, 2, 0.05];
// Sizes of the number that is asked for and of the others; of these, how wide a digit is.
const [LARGE, SMALL, DIGIT] = [76, 36, 0.58];
let gradients = 0;

/** The largest size at which words fit on a line, with the width of each.
 * @param {string[]} tokens @param {number[]} cuts @param {Room} room */
function measured(tokens, cuts, {width, mono}) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  for (let size = 54; ; size -= 2) {
    context.font = `700 ${size}px ${mono}`;
    const widths = tokens.map((text) => Math.max(84, context.measureText(text).width + 32));
    if (size <= SMALLEST || onLine(widths, cuts, width).total <= width) return {size, widths};
  }
}

/** The picture; its parts of class `av-blind` are seen while the class is asked, those of class `av-told` afterwards.
 * @param {Row} row @param {Room} room */
export function drawLine(row, room) {
  const {tokens, values, query, key, dim, cuts} = row;
  const {size, widths} = measured(tokens, cuts, room);
  const {lefts, signs, total} = onLine(widths, cuts, room.width);
  const high = size * 1.7;
  const most = Math.max(160, room.height - high - 230);
  const base = Math.min(room.height - high - 190, most + 20);
  const shrink = Math.min(1, room.width / total);
  const picture = svg("svg", {width: room.width, height: room.height, role: "group", "aria-label": spokenLine(row)});
  const all = svg("g", shrink < 1 ? {transform: `scale(${shrink})`} : {});
  picture.append(all);
  const centre = (/** @type {number} */ place) => lefts[place] + widths[place] / 2;
  if (query !== null) all.append(...links(row, centre, base, most, room));
  for (const x of signs)
    all.append(svg("text", {class: "av-cut", x, y: base + 20 + high * 0.68, "font-size": 44}, "…"));
  const told = values.map((weight, place) => textOf(weight, place === key));
  // The large number lies over a neighbour's where their words are short: it stands a line lower then.
  const half = (/** @type {number} */ place) =>
    ((told[place]?.length ?? 0) * (place === key ? LARGE : SMALL) * DIGIT) / 2;
  const meets = (/** @type {number} */ place) =>
    told[place] && key !== null && Math.abs(centre(place) - centre(key)) < half(place) + half(key) + 12;
  const lower = key !== null && (meets(key - 1) || meets(key + 1)) ? 42 : 0;
  tokens.forEach((text, place) => {
    const cell = svg("g", {class: "av-token", "data-vote": place, tabindex: 0, role: "button"});
    cell.setAttribute("aria-label", room.vote === place ? `${text}, you said` : text);
    const box = {x: lefts[place], y: base + 20, width: widths[place], height: high, rx: 12};
    const marks = [place === query ? "av-is-query" : "", place === key ? "av-is-key" : "", dim[place] ? "av-dim" : ""];
    const weight = values[place];
    const fill = onRamp(room.colours.ramp, weight ?? 0);
    const at = {x: centre(place), y: base + 20 + high * 0.67, "font-size": size};
    cell.append(
      svg("rect", {...box, class: `av-box av-blind ${marks.join(" ")}`}),
      svg("rect", {...box, class: `av-box av-told ${marks.join(" ")}`, style: `fill: rgb(${fill.join(",")})`}),
      svg("text", {...at, class: `av-word av-blind ${marks.join(" ")}`}, text),
      svg("text", {...at, class: `av-word av-told ${marks[0]} ${marks[1]}`, style: `fill: ${inkOn(fill)}`}, text),
    );
    if (room.vote === place) {
      const around = {x: box.x - 9, y: box.y - 9, width: box.width + 18, height: high + 18, rx: 18};
      cell.append(svg("rect", {...around, class: "av-vote"}));
      const below = place === key ? lower : 0;
      cell.append(svg("text", {x: at.x, y: box.y + high + 132 + below, class: "av-said", "font-size": 34}, "you said"));
    }
    if (place === key && weight !== null)
      cell.append(number(at.x, box.y + high + 84 + lower, "av-main", LARGE, told[place]));
    else if (told[place]) cell.append(number(at.x, box.y + high + 52, "av-other", SMALL, told[place]));
    all.append(cell);
  });
  return picture;
}

/** The number below a word, empty where it has none.
 * @param {number | null} weight @param {boolean} asked  whether it is the one that is asked for */
function textOf(weight, asked) {
  if (weight === null) return "—";
  return asked || weight >= LEAST_TOLD ? weightText(weight) : "";
}

/** @param {number} x @param {number} y @param {string} name @param {number} size @param {string} text */
function number(x, y, name, size, text) {
  return svg("text", {x, y, class: `av-number av-told ${name}`, "font-size": size}, text);
}

/** From the word that looks to all others: dashed, and as thick as the weight.
 * @param {Row} row @param {(place: number) => number} centre @param {number} base @param {number} most
 * @param {Room} room */
function links({tokens, values, query, key}, centre, base, most, {colours}) {
  const from = Number(query);
  const furthest = Math.max(...tokens.map((_, place) => Math.abs(centre(place) - centre(from))), 1);
  const path = (/** @type {number} */ place) => {
    const [start, end] = [centre(from), centre(place)];
    const height = most * (0.28 + (0.72 * Math.abs(end - start)) / furthest) * (4 / 3);
    const top = Math.max(base - height, -most * 0.3);
    if (place !== from) return `M${start} ${base}C${start} ${top} ${end} ${top} ${end} ${base}`;
    return `M${start - 18} ${base}C${start - 90} ${base - 150} ${start + 90} ${base - 150} ${start + 18} ${base}`;
  };
  const name = `av-link-${(gradients += 1)}`;
  // What may not be looked at has no link.
  const others = tokens
    .map((_, place) => place)
    .filter((place) => (place !== from && values[place] !== null) || place === key);
  const blind = others.map((place) => svg("path", {class: "av-link av-blind", d: path(place)}));
  const told = others
    .filter((place) => place !== key)
    .map((place) => {
      const weight = values[place] ?? 0;
      const look = {
        "stroke-width": Math.max(THINNEST, weight * THICKEST),
        "stroke-opacity": Math.min(0.9, 0.3 + weight * 3),
      };
      return svg("path", {class: "av-link av-told", d: path(place), ...look});
    });
  if (key === null || values[key] === null) return [...blind, ...told];
  const ends = {x1: centre(from), x2: key === from ? centre(from) + 1 : centre(key)};
  const blend = svg("linearGradient", {id: name, gradientUnits: "userSpaceOnUse", ...ends});
  const stops = [colours.query, colours.accent, colours.key];
  blend.append(...stops.map((colour, at) => svg("stop", {offset: at / 2, "stop-color": colour})));
  const thick = Math.max(THINNEST, Number(values[key]) * THICKEST);
  const main = {class: "av-link av-main av-told", d: path(key), style: `stroke: url(#${name})`, "stroke-width": thick};
  return [blend, ...blind, ...told, svg("path", main)];
}

/** @param {Row} row */
function spokenLine({tokens, query}) {
  return query === null ? "Words" : `Links from ${tokens[query]}`;
}
