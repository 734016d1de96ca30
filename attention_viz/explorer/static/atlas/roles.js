// What heads mostly do, as colours and signs: what is a job has a hue, what is none is neutral, and nothing is hollow.

import {inkOn, onRamp, rgb, weightText} from "../data/scale.js";
import {svg} from "../parts/element.js";

/** @import {AtlasCell, AtlasColours, AtlasHeader, Drawing} from "./grid.js" */

/**
 * What a head can mostly do, as `pack_roles` in atlas_roles.py writes it: `asks` is what it takes, `none` why no head does
 * it, where none does.
 * @typedef {object} Role
 * @property {string} name
 * @property {number} colour  the place of its colour among those of all roles
 * @property {string} label
 * @property {string} meaning
 * @property {Record<"softmax" | "mixer", [label: string, meaning: string]>} [by]  both by the kind of layer, where a
 *   map has both
 * @property {number} threshold
 * @property {boolean} job
 * @property {string} asks
 * @property {string} none
 */

// From so many pixels on a cell has its sign, and its number beside it.
const [SIGN_FROM, NUMBER_FROM] = [11, 50];
// How strong the colour is from the threshold to the most; heads at rest are many, and stand back.
const [USUAL, RESTING] = [
  [0.26, 1],
  [0.14, 0.58],
];

// Each sign in a box of 12 × 12: lines, or, with "fill", an area.
/** @type {Record<string, {lines?: string, fill?: string}>} */
const ROLE_SIGNS = {
  previous: {lines: "M10.5 6H2M5.5 2.5L2 6l3.5 3.5"},
  next: {lines: "M1.5 6H10M6.5 2.5L10 6l-3.5 3.5"},
  above: {lines: "M6 10.5V2M2.5 5.5L6 2l3.5 3.5"},
  itself: {fill: "M6 3a3 3 0 1 0 0 6a3 3 0 1 0 0-6z"},
  "same token": {lines: "M2 4H10M2 8H10"},
  induction: {lines: "M2 9C2 2.5 9 2.5 9.5 7.5M6.8 5.5L9.5 8.2L11.2 5"},
  punctuation: {
    fill: "M6 3.5a1.9 1.9 0 0 1 1.9 2c0 2.2-1.2 3.700-2.9 4.5l-.6-.9c.8-.5 1.300-1 1.5-1.8a1.9 1.9 0 0 1 .1-3.8z",
  },
  first: {lines: "M6 1.5V10.5"},
  broad: {fill: "M2 2h2v2H2zM5 2h2v2H5zM8 2h2v2H8zM2 5h2v2H2zM5 5h2v2H5zM8 5h2v2H8zM2 8h2v2H2zM5 8h2v2H5zM8 8h2v2H8z"},
};

/** The role of a head. @param {AtlasHeader} header @param {{place: number}} cell */
export function roleOf({roles, role}, {place}) {
  return roles[role[place]];
}

/** What a head's role is called, and what it means. @param {Role} role @param {{of: {kind?: string}}} cell */
export function wordingOf(role, {of}) {
  return role.by?.[of.kind ? "mixer" : "softmax"] ?? [role.label, role.meaning];
}

/** How a role's colour is mixed with the page's for a score: null where the cell stays hollow.
 * @param {AtlasHeader} header @param {Role} role @param {number | null} score */
export function strengthOf(header, role, score) {
  if (role.threshold === 0 || score === null) return null;
  const number = header.roles.indexOf(role);
  const scores = header.score.filter((_, place) => header.role[place] === number);
  const most = Math.max(Math.min(1, 2 * role.threshold), ...scores.map((one) => one ?? 0));
  const [low, high] = role.name === "first" ? RESTING : USUAL;
  const share = most > role.threshold ? (score - role.threshold) / (most - role.threshold) : 1;
  return low + (high - low) * Math.min(1, Math.max(0, share));
}

/** @param {Drawing} drawing @param {AtlasCell} cell @param {number} width @param {number} height
 * @param {boolean} isNamed  whether there is room for the role's name */
export function paintRole({header, colours}, cell, width, height, isNamed) {
  const role = roleOf(header, cell);
  const score = header.score[cell.place];
  const strength = strengthOf(header, role, score);
  const colour = strength === null ? colours.background : onRamp([colours.background, hueOf(role, colours)], strength);
  cell.node.style.background = rgb(colour);
  cell.number.style.color = inkOn(colour);
  const sign = Math.min(width, height) < SIGN_FROM ? null : signOf(role.name);
  const written = width < NUMBER_FROM || score === null || strength === null ? "" : weightText(score);
  cell.number.replaceChildren(
    ...(sign ? [sign] : []),
    isNamed ? `${wordingOf(role, cell)[0]} ${written}`.trim() : written,
  );
}

/** A role's full colour. @param {Role} role @param {AtlasColours} colours */
export function hueOf(role, colours) {
  return colours.roles[role.colour];
}

/** The sign of a role, in the colour of the text around it; null for that which has none. @param {string} name */
export function signOf(name) {
  const sign = ROLE_SIGNS[name];
  if (!sign) return null;
  const lines = svg("path", {d: sign.lines ?? sign.fill ?? "", class: sign.lines ? "av-lines" : null});
  return svg("svg", {viewBox: "0 0 12 12", "aria-hidden": "true", class: "av-sign"}, lines);
}

/** A square in a role's colour, with its sign. @param {Role} role @param {AtlasColours} colours */
export function swatchOf(role, colours) {
  const node = document.createElement("span");
  node.className = "av-swatch";
  if (role.threshold > 0) {
    const hue = hueOf(role, colours);
    Object.assign(node.style, {background: rgb(hue), color: inkOn(hue)});
  }
  const sign = signOf(role.name);
  if (sign) node.append(sign);
  return node;
}
