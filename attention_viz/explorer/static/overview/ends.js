// A button for each end of the told link that is out of sight: it leads there.

import {element} from "../parts/element.js";

/** @import {Line} from "../parts/line.js" */

/** One end of the link: its word, whose line has it, and where it lies in that line.
 * @typedef {{role: "query" | "key", line: Line, place: number, at: number}} End */

// The least of a token that has to be in sight, in pixels.
const LEAST_SEEN = 12;

/** @param {(line: Line, place: number) => void} go */
export function createEnds(go) {
  const [before, after] = ["av-end-before", "av-end-after"].map((side) =>
    element("div", {class: `av-far-ends ${side}`, "data-testid": "explorer-ends"}),
  );
  let shown = "";
  return {
    nodes: [before, after],
    /** @param {End[]} ends @param {{scrollLeft: number, clientWidth: number}} scroller */
    show(ends, {scrollLeft, clientWidth}) {
      const early = ends.filter(({at}) => at < scrollLeft + LEAST_SEEN);
      const late = ends.filter(({at}) => at > scrollLeft + clientWidth - LEAST_SEEN);
      const now = [early, late].map((some) => some.map(({role, place}) => `${role} ${place}`).join()).join(";");
      // A button that stays keeps the focus.
      if (now === shown) return;
      shown = now;
      before.replaceChildren(...early.map((end) => buttonTo(end, "\u2190", go)));
      after.replaceChildren(...late.map((end) => buttonTo(end, "\u2192", go)));
    },
  };
}

/** @param {End} end @param {string} arrow @param {(line: Line, place: number) => void} go */
function buttonTo({role, line, place}, arrow, go) {
  const label = `Show the ${role}, ${line.axis.spoken[place]}`;
  const word = element("bdi", {class: role === "query" ? "av-query" : "av-keys"}, line.axis.names[place]);
  const parts = arrow === "\u2190" ? [`${arrow} `, word] : [word, ` ${arrow}`];
  return element(
    "button",
    {type: "button", class: "av-end", title: label, "aria-label": label, onclick: () => go(line, place)},
    ...parts,
  );
}
