// A picture of what is told, to take along: the headline, the text, and the arcs of the query's row, as one SVG.

import {weightsOfRow} from "./row.js";
import {svg} from "../parts/element.js";

/** @import {Colours} from "../parts/style.js"
 * @import {View} from "../parts/view.js" */

/** A piece of text in one colour. @typedef {{text: string, colour: string}} Run */

const [RIM, BLEND] = [24, "av-copied-link"];
const HEADLINE = {size: 22, line: 30, widest: 900};
const TOKEN = {size: 15, gap: 14, least: 46};
const NOTE = 12;
const [LOWEST, HIGHEST] = [40, 150];
const [THINNEST, THICKEST] = [1, 6];
// Of arcs beside the one that is told, those of less weight aren't drawn.
const LEAST_ARC = 0.01;
// XML knows no other control characters than tabs and breaks.
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/** The picture.
 * @param {Pick<View, "now" | "colours">} view @param {Run[][]} headline  in words
 * @param {string} note  where it is seen
 * @param {{rightToLeft: boolean, sans: string, mono: string}} how @returns {SVGElement} */
export function drawCopy({now, colours}, headline, note, {rightToLeft, sans, mono}) {
  const measure = measureIn(`${TOKEN.size}px ${mono}`);
  const row = weightsOfRow(now, rightToLeft);
  let right = RIM;
  const places = row.map(({label}) => {
    const width = Math.max(TOKEN.least, measure(label) + TOKEN.gap);
    right += width;
    return right - width / 2;
  });
  const width = Math.max(right, HEADLINE.widest / 2) + RIM;
  const root = svg("svg", {"font-family": sans});
  const lines = wrapped(headline, measureIn(`700 ${HEADLINE.size}px ${sans}`), Math.max(width - 2 * RIM, 400));
  lines.forEach((runs, at) => {
    const text = svg("text", {x: RIM, y: RIM + HEADLINE.line * (at + 0.75)});
    setAll(text, {"font-size": HEADLINE.size, "font-weight": 700});
    for (const run of runs) text.append(labelled("tspan", run.text, {fill: run.colour}));
    root.append(text);
  });
  const top = RIM + HEADLINE.line * lines.length;
  root.append(labelled("text", note, {x: RIM, y: top + 16, fill: colours.muted, "font-size": NOTE}));
  const reach = Math.max(...places) - Math.min(...places);
  const line = top + 34 + Math.min(HIGHEST, Math.max(LOWEST, reach / 5));
  root.append(...arcs(row, places, line, colours), ...words(row, places, line, colours, mono));
  const height = line + 24 + RIM;
  setAll(root, {width: Math.ceil(width), height, viewBox: `0 0 ${Math.ceil(width)} ${height}`});
  root.prepend(svg("rect", {width: "100%", height: "100%", fill: colours.background}));
  return root;
}

/** Arcs from the query to its keys, the one that is told last.
 * @param {ReturnType<typeof weightsOfRow>} row @param {number[]} places @param {number} line
 * @param {Readonly<Colours>} colours */
function arcs(row, places, line, colours) {
  const from = places[row.findIndex(({isQuery}) => isQuery)];
  if (from === undefined) return [];
  const most = Math.max(1, ...places.map((to) => Math.abs(to - from)));
  const key = row.findIndex(({isKey}) => isKey);
  const blend = key < 0 ? [] : [blended(from, places[key], colours)];
  const paths = row
    .map((token, at) => ({...token, to: places[at]}))
    .filter(({share, isKey, to}) => to !== from && (isKey || share >= LEAST_ARC))
    .sort((one, other) => Number(one.isKey) - Number(other.isKey))
    .map(({share, isKey, to}) => {
      const rise = line - LOWEST / 2 - (Math.abs(to - from) / most) * (HIGHEST - LOWEST / 2) * 0.75;
      return svg("path", {
        ...{d: `M${from} ${line} C${from} ${rise} ${to} ${rise} ${to} ${line}`, fill: "none"},
        ...{stroke: isKey ? `url(#${BLEND})` : colours.muted, "stroke-opacity": isKey ? 1 : 0.4},
        ...{"stroke-width": THINNEST + (THICKEST - THINNEST) * share, "stroke-linecap": "round"},
      });
    });
  return [...blend, ...paths];
}

/** From the query's colour to the key's, as the arc on the screen.
 * @param {number} from @param {number} to @param {Readonly<Colours>} colours */
function blended(from, to, {query, accent, key}) {
  const stops = [query, accent, key].map((colour, at) => svg("stop", {offset: at / 2, "stop-color": colour}));
  return svg("linearGradient", {id: BLEND, gradientUnits: "userSpaceOnUse", x1: from, x2: to, y1: 0, y2: 0}, ...stops);
}

/** @param {ReturnType<typeof weightsOfRow>} row @param {number[]} places @param {number} line
 * @param {Readonly<Colours>} colours @param {string} mono */
function words(row, places, line, colours, mono) {
  return row.map(({label, isQuery, isKey}, at) => {
    const fill = isQuery ? colours.query : isKey ? colours.key : colours.ink;
    const look = {"font-size": TOKEN.size, "font-family": mono, "font-weight": isQuery || isKey ? 700 : 400};
    return labelled("text", label, {x: places[at], y: line + 20, fill, "text-anchor": "middle", ...look});
  });
}

/** Lines of words that fit. @param {Run[][]} headline @param {(text: string) => number} measure @param {number} width */
function wrapped(headline, measure, width) {
  /** @type {Run[][]} */
  const lines = [[]];
  let used = 0;
  for (const word of headline) {
    const taken = word.reduce((sum, {text}) => sum + measure(text), 0);
    if (used > 0 && used + taken > width) {
      lines.push([]);
      used = 0;
    }
    lines[lines.length - 1].push(...word);
    used += taken;
  }
  return lines;
}

/** How wide a text is in a font. @param {string} font */
function measureIn(font) {
  const context = document.createElement("canvas").getContext("2d");
  if (!context) return (/** @type {string} */ text) => text.length * 9;
  context.font = font;
  return (/** @type {string} */ text) => context.measureText(text).width;
}

/** @param {"text" | "tspan"} tag @param {string} text @param {Record<string, string | number>} attributes */
function labelled(tag, text, attributes) {
  return svg(tag, {...attributes, "xml:space": "preserve"}, text.replace(NOT_XML, "\ufffd"));
}

/** @template {SVGElement} N @param {N} node @param {Record<string, string | number>} attributes */
function setAll(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}
