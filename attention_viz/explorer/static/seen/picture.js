// A picture in place of the line of tokens: the picture itself, all heads as small overlays, and what a patch looks at.

import {createClaim} from "../claim/claim.js";
import {createFindings} from "../claim/findings.js";
import {createGrid} from "../heads/grid.js";
import {readPlane} from "../data/payload.js";
import {element, fitCanvas} from "../parts/element.js";
import {streamSwitch} from "../parts/controls.js";
import {createNotes} from "../parts/legend.js";
import {createTable} from "../parts/table.js";
import {createPictureLists} from "./lists.js";
import {lineOf, overPatches, patchesOf} from "./patches.js";
import {lookedAt, saidOfPicture} from "./chosen.js";
import {createPhrase} from "./phrase.js";
import {createStage} from "./stage.js";
import {litPhoto} from "./tiles.js";
import {DARK} from "./veil.js";

/** @import {OwnView, Part} from "../parts/view.js"
 * @import {Picture} from "../data/recording.js"
 * @import {Photo} from "./tiles.js" */

/** The parts of an explorer of a picture, in the order in which they are drawn; null where the trace is of none.
 * @param {OwnView} view @returns {{first: Part[], later: Part[]} | null} */
export function pictureParts(view) {
  const packed = view.recording.header.seen?.picture;
  const patches = packed ? patchesOf(view.now.stream.keys, packed.sheet) : null;
  if (!packed || !patches || !view.now.stream.own) return null;
  view.told = () => saidOfPicture(view, patches);
  /** @type {Photo | null} */
  let photo = null;
  /** @type {WeakMap<HTMLCanvasElement, {head: Picture, what: string}>} */
  const painted = new WeakMap();
  readPlane(view.recording.payload, packed.at).then((dots) => {
    photo = {...packed, dots};
    view.store.set({loaded: view.store.state.loaded + 1});
  });
  const [claim, findings] = [createClaim(view), createFindings(view)];
  const stage = createStage(view, patches, () => photo);
  const shape = {
    height: 999,
    largest: 76,
    tallest: packed.rows / packed.columns,
    broadest: packed.columns / packed.rows,
  };
  const grid = createGrid(view, {
    follows: ["overQuery", "query", "pairQuery", "pairKey", "direction", "layer", "head"],
    shape,
    paint: (canvas, head, {width, height}) => {
      if (!photo || !("at" in head)) return;
      const looked = lookedAt(view, patches);
      // A region that words look at is the same in all heads: they stay as they are of the kept word.
      const kept = patches.joint && looked.direction === "to";
      const chosen = kept ? (view.now.pair?.query ?? 0) : looked.position;
      const direction = kept ? "from" : looked.direction;
      const what = `${chosen} ${direction} ${width} ${height} ${window.devicePixelRatio}`;
      // While layers arrive one after another, most heads are painted already.
      if (painted.get(canvas)?.head === head && painted.get(canvas)?.what === what) return;
      painted.set(canvas, {head, what});
      const line = lineOf(head, chosen, view.now.stream.keys.count, direction);
      const context = fitCanvas(canvas, width, height);
      const weights = overPatches(line, patches);
      const image = litPhoto(photo, weights, patches, canvas.width, canvas.height, brightOf(weights, patches));
      context.putImageData(image, 0, 0);
    },
  });
  const [lists, notes, table] = [createPictureLists(view, patches), createNotes(view), createTable(view)];
  const top = element("section", {class: "av-top", "data-testid": "explorer-claim", "aria-label": "Findings"});
  top.append(claim.node, findings.node);
  const beside = element("div", {class: "av-picture-beside"}, grid.node, lists.node);
  const main = element("div", {class: "av-picture-main"}, stage.node, beside);
  const phrase = patches.joint ? createPhrase(view, patches) : null;
  const switching = streamSwitch(view);
  view.root.append(top, ...switching, ...(phrase ? [phrase.node] : []), main, notes.node, table.node, view.live);
  return {first: [stage, ...(phrase ? [phrase] : []), claim, findings], later: [grid, lists, notes, table]};
}

/** How bright the light of a head is: beside words as far as its row is of the picture.
 * @param {Float32Array} weights @param {{joint: boolean}} patches */
function brightOf(weights, {joint}) {
  const share = joint ? weights.reduce((sum, weight) => sum + weight, 0) : 1;
  return DARK + (1 - DARK) * Math.min(1, share);
}
