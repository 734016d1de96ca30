// The picture that was read: with the question as it is, with the answer in colour where the weights are.

import {element, svg} from "../parts/element.js";

/** A picture and the weights of its patches, row by row, as Python's `ShownPicture` tells them.
 * @typedef {object} Shown
 * @property {number} seen  its place among the pictures that came with the slides
 * @property {number} down
 * @property {number} across
 * @property {(number | null)[]} weights  null where a patch may not be looked at
 * @property {number | null} query
 * @property {number | null} key
 * @property {[row: number, column: number, down: number, across: number][]} boxes */

// How pale a patch without weight is; and a frame's line as a part of the picture.
const [PALEST, LINE] = [0.82, 0.011];

/** How pale each patch is once it is answered: 0 of the one with the most weight. @param {(number | null)[]} weights */
export function palenessOf(weights) {
  const most = Math.max(0, ...weights.map((weight) => weight ?? 0)) || 1;
  return weights.map((weight) => PALEST * (1 - Math.max(0, weight ?? 0) / most));
}

/** @param {Shown} shown
 * @param {string} file  the picture, as an address that holds it
 * @param {{width: number, height: number}} room */
export function drawShown({down, across, weights, query, key, boxes}, file, {width, height}) {
  const scale = Math.min(width / across, height / down);
  const sides = {width: across * scale, height: down * scale};
  const place = element("div", {class: "av-shown"});
  const drawing = svg("svg", {...sides, viewBox: `0 0 ${across} ${down}`, role: "img", "aria-label": "Image"});
  drawing.append(svg("image", {href: file, width: across, height: down, preserveAspectRatio: "none"}));
  for (const [at, pale] of palenessOf(weights).entries()) {
    const box = {x: at % across, y: Math.floor(at / across), width: 1, height: 1, "fill-opacity": pale};
    drawing.append(svg("rect", {class: "av-pale av-told", ...box}));
  }
  const line = LINE * across;
  for (const [row, column, high, wide] of boxes) drawing.append(...frame("av-framed", [row, column, high, wide], line));
  for (const [name, patch] of /** @type {[string, number | null][]} */ ([
    ["av-framed-key av-told", key],
    ["av-framed-query", query],
  ]))
    if (patch !== null) drawing.append(...frame(name, [Math.floor(patch / across), patch % across, 1, 1], line));
  place.append(drawing);
  return place;
}

/** A frame that is seen on light and on dark: its line, and a wider one of the page's colour beneath.
 * @param {string} name @param {[row: number, column: number, down: number, across: number]} box @param {number} line */
function frame(name, [row, column, down, across], line) {
  const box = {x: column, y: row, width: across, height: down, fill: "none"};
  return [
    svg("rect", {...box, class: `av-beneath ${name}`, "stroke-width": 2.2 * line}),
    svg("rect", {...box, class: `av-frame ${name}`, "stroke-width": line}),
  ];
}
