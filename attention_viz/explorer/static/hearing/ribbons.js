// The words above a sound and the ribbons from each to what it hears.

import {element, svg} from "../parts/element.js";

// Heights in pixels: of the words, of the ribbons, of the spectrogram, of the curve below it, of the axis.
export const TALL = {words: 30, ribbons: 82, sound: 136, curve: 44, axis: 20};

/** From where to where each word stands, spread over the whole width.
 * @param {string[]} words @param {number} width @returns {[number, number][]} */
export function seatsOf(words, width) {
  const letters = words.map((word) => word.length + 2);
  const all = letters.reduce((sum, one) => sum + one, 0) || 1;
  let at = 0;
  return letters.map((one) => {
    const from = at;
    at += (one / all) * width;
    return [from + 2, at - 2];
  });
}

/** @param {[number, number]} seat @param {[number, number]} heard @param {boolean} chosen */
export function ribbon([from, to], [start, end], chosen) {
  const [top, bottom] = [TALL.words, TALL.words + TALL.ribbons];
  const middle = (top + bottom) / 2;
  const d = `M${from},${top}C${from},${middle} ${start},${middle} ${start},${bottom}L${end},${bottom}C${end},${middle} ${to},${middle} ${to},${top}Z`;
  return svg("path", {class: chosen ? "av-ribbon av-ribbon-chosen" : "av-ribbon", d});
}

export function gradient() {
  const stops = ["query", "accent", "key"].map((name, at) =>
    svg("stop", {offset: at / 2, "stop-color": `var(--av-${name})`}),
  );
  return svg("defs", {}, svg("linearGradient", {id: "av-ribbon-colours", x1: 0, y1: 0, x2: 0, y2: 1}, ...stops));
}

/** @param {string} text @param {number} word @param {[number, number]} seat @param {boolean} chosen */
export function wordNode(text, word, [from, to], chosen) {
  const node = element(
    "button",
    {type: "button", class: "av-said", "data-word": word, "aria-pressed": String(chosen)},
    text,
  );
  Object.assign(node.style, {left: `${from}px`, width: `${to - from}px`});
  return node;
}
