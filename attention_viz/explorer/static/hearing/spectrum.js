// The spectrogram as the model reads it, time from left to right and high sounds above.

import {channels, onRamp, pixel} from "../data/scale.js";

/** @import {Colours} from "../parts/style.js" */

// What is loud is dark: in between, a little less than in proportion.
const POWER = 1.5;

/** Draw the bands of a spectrogram, each one dot high and each of its columns one dot wide.
 * @param {HTMLCanvasElement} canvas
 * @param {Uint8Array} mel  (column, band): 0 to 255
 * @param {{bands: number, columns: number}} size @param {Readonly<Pick<Colours, "background" | "ink">>} colours */
export function drawSpectrum(canvas, mel, {bands, columns}, {background, ink}) {
  Object.assign(canvas, {width: columns, height: bands});
  const ends = [background, ink].map(channels);
  const table = Uint32Array.from({length: 256}, (_, loud) => pixel(onRamp(ends, (loud / 255) ** POWER)));
  const image = new ImageData(columns, bands);
  const dots = new Uint32Array(image.data.buffer);
  for (let band = 0; band < bands; band++)
    for (let column = 0; column < columns; column++)
      dots[(bands - 1 - band) * columns + column] = table[mel[column * bands + band]];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.putImageData(image, 0, 0);
}
