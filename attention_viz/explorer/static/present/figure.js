// A lesson's figure on a slide: Plotly draws it, larger than on a page, once its script is there.

import {loadScript} from "../hosts/scripts.js";
import {element} from "../parts/element.js";

/** @typedef {{newPlot: (place: Element, figure: object) => Promise<unknown>}} Plotly */

// What a slide writes is this many times as large as on a page, and the least.
const [ENLARGED, BARELY] = [2, 1.85];
/** @type {Promise<Plotly> | null} */
let loading = null;

/** Draw a figure into a room, as large as it fits.
 * @param {string} figure  Plotly's JSON @param {string} script  the address of Plotly's script
 * @param {{width: number, height: number, name: string}} room  and the figure in words */
export function drawFigure(figure, script, room) {
  const place = element("div", {class: "av-figure", role: "img", "aria-label": room.name});
  const {data, layout} = JSON.parse(figure);
  const scale = figureScale(layout.height ?? 0, room.height);
  const [width, height] = [room.width / scale, room.height / scale];
  const drawn = element("div");
  Object.assign(drawn.style, {width: `${width}px`, height: `${height}px`, transform: `scale(${scale})`});
  place.append(drawn);
  const whole = {
    data,
    layout: {...layout, title: undefined, autosize: false, width, height},
    config: {staticPlot: true},
  };
  loading ??= loadPlotly(script);
  loading
    .then((plotly) => (drawn.isConnected ? plotly.newPlot(drawn, whole) : null))
    .catch(() => {
      loading = null;
      drawn.replaceWith("The figure can't be drawn: its script didn't load. Go back and on again.");
    });
  return place;
}

/** How many times as large as on a page: less if the figure is high, since its rows need their room.
 * @param {number} wanted  the figure's own height, 0 for any @param {number} height  of the room */
export function figureScale(wanted, height) {
  return Math.max(BARELY, Math.min(ENLARGED, wanted ? height / wanted : ENLARGED));
}

/** @param {string} script @returns {Promise<Plotly>} */
async function loadPlotly(script) {
  const here = /** @type {any} */ (globalThis);
  if (!here.Plotly) await loadScript(script);
  if (!here.Plotly) throw new Error("no Plotly");
  return here.Plotly;
}
