// What is drawn in lines over a spectrogram: curves of weights, and the axis of time.

import {svg} from "../parts/element.js";

/** A row of weights as a curve that stands on a line.
 * @param {Float32Array} line
 * @param {number} most  the weight that is as high as the curve can be
 * @param {{left: (frame: number) => number, foot: number, height: number}} place */
export function curveOf(line, most, {left, foot, height}) {
  const points = Array.from(
    line,
    (weight, frame) => `L${left(frame + 0.5).toFixed(1)},${(foot - (height * weight) / (most || 1)).toFixed(1)}`,
  );
  return `M${left(0).toFixed(1)},${foot}${points.join("")}L${left(line.length).toFixed(1)},${foot}Z`;
}

// Half of a number below a sound is as wide, in pixels.
const HALF = 12;

/** The seconds below a sound, a tick each half second or more.
 * @param {number} seconds @param {(second: number) => number} left @param {number} top */
export function timeAxis(seconds, left, top) {
  const step = [0.5, 1, 2, 5, 10].find((one) => seconds / one <= 12) ?? 30;
  const ticks = Array.from({length: Math.floor(seconds / step) + 1}, (_, at) => at * step);
  // At either end a number stands beside its place, so that it isn't cut off.
  const anchorOf = (/** @type {number} */ second) => (left(seconds) - left(second) < HALF ? "end" : "middle");
  return ticks.map((second) =>
    svg(
      "text",
      {class: "av-time", x: left(second), y: top, "text-anchor": second ? anchorOf(second) : "start"},
      `${second.toFixed(1)}${second ? "" : " s"}`,
    ),
  );
}
