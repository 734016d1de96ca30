// A sound in place of the line of tokens: what is said of it against time, or how it listens to itself.

import {createClaim} from "../claim/claim.js";
import {createFindings} from "../claim/findings.js";
import {createGrid} from "../heads/grid.js";
import {element} from "../parts/element.js";
import {streamSwitch} from "../parts/controls.js";
import {createNotes} from "../parts/legend.js";
import {createTable} from "../parts/table.js";
import {createKeeping} from "./keeping.js";
import {createMoments} from "./moments.js";
import {createTimes} from "./times.js";
import {createWords} from "./words.js";

/** @import {OwnView, Part} from "../parts/view.js" */

// How high all heads are, in pixels.
const GRID = 280;

/** The parts of an explorer of a sound, in the order in which they are drawn; null where none is heard on the screen.
 * @param {OwnView} view @param {boolean | undefined} crossing  whether the page is about cross-attention
 * @returns {{first: Part[], later: Part[]} | null} */
export function soundParts(view, crossing) {
  const packed = view.recording.header.seen?.sound;
  if (!packed || !view.now.stream.keys.place) return null;
  const written = view.now.stream.name === "cross" && packed.words.length > 0;
  const top = element("section", {class: "av-top", "data-testid": "explorer-claim", "aria-label": "Findings"});
  const [claim, findings, notes, table] = [
    createClaim(view),
    createFindings(view),
    createNotes(view),
    createTable(view),
  ];
  top.append(claim.node, findings.node);
  // Words run down and time across: heads are as wide as there is room.
  const grid = createGrid(view, {shape: {height: GRID, broadest: 8, largest: 240}});
  const hero =
    written && crossing
      ? createKeeping(view, packed)
      : written
        ? createWords(view, packed)
        : createMoments(view, packed);
  view.told = hero.said;
  const times = written ? createTimes(view, packed) : null;
  const beneath = element("div", {class: "av-sound-beneath"}, grid.node, times?.node ?? null);
  view.root.append(top, ...streamSwitch(view), hero.node, beneath, notes.node, table.node, view.live);
  return {first: [grid, hero, claim, findings], later: [...(times ? [times] : []), notes, table]};
}
