// The images beside a text, lit where the chosen head attends.

import {plainNumber} from "./reading.js";
import {element, svg} from "../parts/element.js";

/** @import {Place} from "./map.js"
 * @import {WhyHeader} from "./reading.js" */

/** Small images; of each position that reads a part of one its number and edges, from 0 to 1; and of each head the sums
 * of weight and contribution over all of these.
 * @typedef {{images: {rows: number, columns: number, png: string}[], boxes: Record<string, [number, number, number, number, number]>, over: Record<string, [number, number]>}} SeenBeside */

// How dark a part is that the head doesn't attend to, and how high an image is, in pixels.
const [DARK, HIGH] = [0.75, 128];

/** @param {WhyHeader} header @param {Place} place @returns {HTMLElement[]} */
export function drawPhotos(header, place) {
  const {seen, sources, at: own} = header;
  if (!seen) return [];
  const weights = new Map((sources[place.join(" ")] ?? []).map(([at, weight]) => [at, weight]));
  const boxes = Object.entries(seen.boxes).map(([at, box]) => ({
    at: Number(at),
    box,
    weight: weights.get(Number(at)) ?? 0,
  }));
  const most = Math.max(1e-9, ...boxes.map(({weight}) => weight));
  return seen.images.map(({rows, columns, png}, which) => {
    const rects = boxes
      .filter(({box}) => box[0] === which)
      .map(({at, box, weight}) => {
        const [, top, left, bottom, right] = box;
        const edges = {
          x: left * columns,
          y: top * rows,
          width: (right - left) * columns,
          height: (bottom - top) * rows,
        };
        const shade = {...edges, "fill-opacity": (DARK * (1 - weight / most)).toFixed(3), "data-at": at};
        return svg("rect", {...shade, class: at === own ? "av-own" : null}, svg("title", {}, plainNumber(weight)));
      });
    const width = Math.max(48, Math.round((HIGH * columns) / rows));
    const label = `Image ${which + 1}, lit where the head attends`;
    const view = {viewBox: `0 0 ${columns} ${rows}`, width, height: HIGH, role: "img", "aria-label": label};
    const image = {href: `data:image/png;base64,${png}`, width: columns, height: rows, preserveAspectRatio: "none"};
    return element("figure", {class: "av-why-photo"}, svg("svg", view, svg("image", image), ...rects));
  });
}
