// The look: colours and fonts as the style sheet gives them, for what is drawn on canvases.

import {channels, onRamp, pixel} from "../data/scale.js";

/** @import {Hatching} from "../data/raster.js"
 * @import {Colour, ScaleName} from "../data/scale.js" */

const NAMES = /** @type {const} */ ([
  "background",
  "surface",
  "ink",
  "muted",
  "line",
  "accent",
  "query",
  "key",
  "blocked",
]);

/** The colours of the theme, as the style sheet writes them and as canvases need them.
 * @typedef {Record<typeof NAMES[number], string> & {rampText: string[], ramp: Colour[], differences: Colour[], roles: Colour[]}} Colours */

/** `size` is how many times as large as usual they are.
 * @typedef {{mono: string, size: number, small: string, strong: string, number: string, smallNumber: string, largeNumber: string}} Fonts */

/** The colours and fonts that the style sheet gives this theme, for what is drawn on canvases.
 * @param {HTMLElement} root @returns {{colours: Colours, fonts: Fonts}} */
export function readStyle(root) {
  const style = getComputedStyle(root);
  const value = (/** @type {string} */ name) => style.getPropertyValue(`--av-${name}`).trim();
  const stops = (/** @type {string} */ name) => value(name).split(/\s+/);
  const rampText = stops("ramp");
  const mono = value("mono");
  return {
    fonts: fontsOf(mono, 1),
    colours: /** @type {Colours} */ ({
      ...Object.fromEntries(NAMES.map((name) => [name, value(name)])),
      ...{rampText, ramp: rampText.map(channels)},
      ...{differences: stops("differences").map(channels), roles: stops("roles").map(channels)},
    }),
  };
}

/** The fonts of a canvas. @param {string} mono @param {number} size @returns {Fonts} */
export function fontsOf(mono, size) {
  const at = (/** @type {number} */ pixels) => `${Math.round(pixels * size)}px ${mono}`;
  const [small, number, smallNumber, largeNumber] = [11, 10, 9, 15].map(at);
  return {mono, size, small, strong: `700 ${small}`, number, smallNumber, largeNumber};
}

/** The colours of a scale, from its lowest place to its highest.
 * @param {Readonly<Colours>} colours @param {ScaleName} scale */
export function rampOf({ramp, differences}, scale) {
  return scale === "signed" ? differences : ramp;
}

/** How blocked cells are hatched.
 * @param {Readonly<Colours>} colours @param {number} period @param {number} strength @returns {Hatching} */
export function hatchingOf({background, blocked}, period, strength) {
  return {
    ground: pixel(channels(background)),
    hatch: pixel(onRamp([channels(background), channels(blocked)], strength)),
    period: Math.round(period * (window.devicePixelRatio || 1)),
  };
}
