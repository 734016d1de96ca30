// What is seen of a stream: the parts of a text, or of an image or audio, in the order in which they are drawn.

import {createBars} from "./parts/bars.js";
import {createChoices} from "./crossing/choices.js";
import {createClaim} from "./claim/claim.js";
import {createFindings} from "./claim/findings.js";
import {createCopy} from "./copy/copy.js";
import {createMatters} from "./claim/matters.js";
import {createControls} from "./parts/controls.js";
import {element} from "./parts/element.js";
import {createGrid} from "./heads/grid.js";
import {createHeatmap} from "./parts/heatmap.js";
import {createLegend, createNotes} from "./parts/legend.js";
import {createSearch} from "./parts/search.js";
import {createStrip} from "./parts/strip.js";
import {createTable} from "./parts/table.js";
import {pictureParts} from "./seen/picture.js";
import {soundParts} from "./hearing/sound.js";
import {createTurns} from "./turns.js";
import {look} from "./parts/view.js";

/** @import {OwnView, Part, State} from "./parts/view.js" */

// On a page about cross-attention, all heads leave room for what follows them.
const CROSS_SHAPE = {
  get height() {
    return window.innerWidth < 1500 ? 236 : 316;
  },
  broadest: 8,
  largest: 440,
};
/** @type {(keyof State)[]} */
export const EVERYTHING = [
  "stream",
  "layer",
  "head",
  "hideSpecial",
  "scale",
  "size",
  "theme",
  "loaded",
  "query",
  "key",
  "preview",
];

/** The parts on the screen. Each stream of an image or audio has parts of its own, so they change with it.
 * @param {OwnView} view @param {boolean | undefined} crosses  whether the page is about cross-attention */
export function createContents(view, crosses) {
  const {root, store, recording} = view;
  const own = [...root.children];
  const begin = () => createTurns(view, pictureParts(view) ?? soundParts(view, crosses) ?? addParts(view, crosses));
  let [shown, turns] = [view.now.stream.name, begin()];
  return {
    /** @param {Set<keyof State>} changed
     * @param {(view: OwnView) => void} choosePair  settles the pair that the head is told by */
    draw(changed, choosePair) {
      const isOther = Boolean(recording.header.seen) && store.state.stream !== shown;
      if (isOther) {
        turns.stop();
        Object.assign(view, {told: null, now: look(store.state, recording)});
        root.replaceChildren(...own);
        [shown, turns] = [store.state.stream, begin()];
      }
      turns.draw(isOther ? new Set(EVERYTHING) : changed, choosePair);
    },
    stop: () => turns.stop(),
  };
}

/** What is seen of the explorer, in the order in which it is drawn: those that ask for sizes come before those that
 * change what has to be laid out, so that the browser lays out once. `later` may come a frame after the others.
 * @param {OwnView} view @param {boolean | undefined} crosses  whether the page is about cross-attention
 * @returns {{first: Part[], later: Part[]}} */
function addParts(view, crosses) {
  const crossing = crosses && view.now.stream.name === "cross" ? createChoices(view) : null;
  const matters = createMatters(view);
  const [claim, findings, controls, legend, strip, grid] = [
    createClaim(view),
    createFindings(view),
    createControls(view),
    createLegend(view),
    createStrip(view, (sight) => {
      heatmap.mark(sight);
      view.root.toggleAttribute("data-sight", sight !== null);
    }),
    createGrid(view, crossing ? {shape: CROSS_SHAPE} : null),
  ];
  const [heatmap, bars, notes, search, table] = [
    createHeatmap(view),
    createBars(view),
    createNotes(view),
    createSearch(view),
    createTable(view),
  ];
  controls.node.append(notes.sums, legend.node);
  const copy = createCopy(view);
  claim.node.append(...(matters ? [matters.node] : []), copy.node);
  const main = element(
    "div",
    {class: "av-main"},
    grid.node,
    heatmap.node,
    bars.node,
    search.node,
    crossing?.node ?? null,
  );
  if (crossing) main.classList.add("av-main-cross");
  const top = element("section", {class: "av-top", "data-testid": "explorer-claim", "aria-label": "Findings"});
  top.append(claim.node, findings.node);
  view.root.append(top, strip.node, controls.node, main, notes.node, table.node, view.live);
  return {
    first: [grid, heatmap, strip, controls, legend, claim, ...(matters ? [matters] : []), findings],
    later: [...(crossing ? [crossing] : []), bars, notes, search, table, copy],
  };
}
