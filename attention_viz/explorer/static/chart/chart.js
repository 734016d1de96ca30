// A matrix or bars of any numbers, or a photo lit by them, in a Streamlit page. Called again for new data and for a change of theme.
//
// `chart_payload.py` writes the bytes. A click shows at once; the page hears of it, and may answer with other bytes.

import {createBarRows} from "./rows.js";
import {createNumberGrid} from "./grid.js";
import {createLitPhoto} from "./photo.js";
import {mountComponent, watchSize} from "../hosts/component.js";
import {readPayload} from "../data/payload.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js"
 * @import {Payload} from "../data/payload.js"
 * @import {BarsHeader} from "./rows.js"
 * @import {GridHeader} from "./grid.js"
 * @import {PhotoHeader} from "./photo.js" */

/** One kind of chart in its element. @typedef {{load: (payload: Payload<any>) => void, draw: () => void}} Drawing */

/** @typedef {Mounted & {kind: string, drawing: Drawing | null}} Chart */

/** @param {Mounting} mounting */
export default function chartComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-chart",
    /** @returns {Chart} */
    create(base) {
      const chart = {...base, kind: "", drawing: null};
      watchSize(chart, () => redraw(chart));
      return chart;
    },
    load(chart, bytes) {
      /** @type {Payload<GridHeader | BarsHeader | PhotoHeader>} */
      const payload = readPayload(bytes);
      const {kind} = payload.header;
      if (chart.kind !== kind) {
        const press = (/** @type {unknown} */ at) => chart.setTriggerValue("press", at);
        const makers = {grid: createNumberGrid, bars: createBarRows, photo: createLitPhoto};
        chart.drawing = makers[kind](chart.root, press);
        chart.kind = kind;
      }
      chart.drawing?.load(payload);
    },
    draw: redraw,
  });
}

/** @param {Chart} chart */
function redraw({drawing}) {
  drawing?.draw();
}
