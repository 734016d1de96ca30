// The ablated head on the map: struck out wherever it is, and a mark on the heads whose weights it changes. The button
// beside the map says what is ablated; the map says which head is chosen.

import {weightText} from "../data/scale.js";
import {openChannel} from "../hosts/hosting.js";

/** @import {Atlas, AtlasCell} from "./grid.js" */

/** A head by its stream, layer and head, as it is written, and the share of each head's weights that moved without it,
 * in the order of the map, once that is known.
 * @typedef {{of: string, name: string, changed: (number | null)[] | null}} Silence */

// A smaller change counts as none: two digits don't show it.
const LEAST = 0.005;

/** Say what is ablated; whoever comes later finds it there. @param {Silence | null} now */
export function announceSilence(now) {
  openChannel().silence = now;
  openChannel().target.dispatchEvent(new CustomEvent("silence", {detail: now}));
}

/** Hear which head was chosen on the map. @param {(head: {of: string, name: string, heard: number}) => void} hear
 * @param {AbortSignal} signal */
export function hearHeads(hear, signal) {
  openChannel().target.addEventListener("head", (event) => hear(/** @type {CustomEvent} */ (event).detail), {signal});
}

/** Say which head was chosen, with the serial number of the choice.
 * @param {Atlas} atlas @param {AtlasCell} cell */
export function announceHead(atlas, cell) {
  const detail = {of: idOf(atlas, cell), name: headName(cell), heard: atlas.serial};
  openChannel().target.dispatchEvent(new CustomEvent("head", {detail}));
}

/** Follow what is ablated. @param {Atlas} atlas @param {AbortSignal} signal @param {() => void} mark */
export function followSilence(atlas, signal, mark) {
  /** @type {Silence["changed"]} */
  let flashed = null;
  const take = () => {
    const changed = silenceNow()?.changed ?? null;
    mark();
    if (changed !== null && JSON.stringify(changed) !== JSON.stringify(flashed)) flash(atlas);
    flashed = changed;
  };
  openChannel().target.addEventListener("silence", take, {signal});
}

/** @returns {Silence | null} */
function silenceNow() {
  return openChannel().silence;
}

/** Strike out the ablated head, and mark those that changed. @param {Atlas} atlas */
export function markSilence(atlas) {
  const most = mostChanged();
  for (const cell of atlas.grid.cells.values()) {
    const {node} = cell;
    const share = changeOf(cell);
    node.classList.toggle("av-struck", isStruck(atlas, cell));
    node.classList.toggle("av-moved", share !== null);
    if (share === null) delete node.dataset["moved"];
    else {
      node.dataset["moved"] = weightText(share);
      node.style.setProperty("--av-share", String(share / most));
    }
    const words = silenceWords(atlas, cell);
    const label = (node.getAttribute("aria-label") ?? "").split("; ")[0];
    node.setAttribute("aria-label", words ? `${label}; ${words}` : label);
  }
  for (const best of atlas.cards.node.querySelectorAll(".av-best")) {
    const cell = atlas.grid.cells.get(best.getAttribute("data-place") ?? "");
    best.classList.toggle("av-struck", cell !== undefined && isStruck(atlas, cell));
  }
}

/** What became of a head, in words. @param {Atlas} atlas @param {AtlasCell} cell */
export function silenceWords(atlas, cell) {
  const [share, silence] = [changeOf(cell), silenceNow()];
  if (isStruck(atlas, cell)) return "ablated";
  return share === null || !silence ? "" : `without ${silence.name}, ${weightText(share)} of its weight moves`;
}

/** What the marks of the ablation stand for. @returns {{struck: string, moved: string} | null} */
export function silenceMarks() {
  const [silence, most] = [silenceNow(), mostChanged()];
  const moved = most < LEAST ? "" : `weights moved, ${weightText(most)} at the longest`;
  return silence && {struck: `${silence.name} ablated`, moved};
}

function mostChanged() {
  return Math.max(0, ...(silenceNow()?.changed ?? []).map((share) => share ?? 0));
}

/** @param {AtlasCell} cell */
function changeOf({place}) {
  const share = silenceNow()?.changed?.[place] ?? 0;
  return share < LEAST ? null : share;
}

/** @param {Atlas} atlas @param {AtlasCell} cell */
function isStruck(atlas, cell) {
  return silenceNow()?.of === idOf(atlas, cell);
}

/** @param {Atlas} atlas @param {AtlasCell} cell */
function idOf({message}, {of, layer, head}) {
  return `${of.stream ?? message?.stream ?? ""} ${layer} ${head}`;
}

/** A head as it is written; of a layer with a matrix per channel, the layer. @param {AtlasCell} cell */
function headName({of, layer, head}) {
  return of.channels ? `layer ${layer}\u2019s mixer` : `${layer}\u00b7${head}`;
}

/** @param {Atlas} atlas */
function flash({grid}) {
  for (const {node} of grid.cells.values()) {
    if (!node.classList.contains("av-moved")) continue;
    node.classList.add("av-flash");
    setTimeout(() => node.classList.remove("av-flash"), 400);
  }
}
