// In which order the explorer's parts are drawn, so that what somebody waits for is seen first.

import {linksOf} from "./data/pair.js";
import {hasAny} from "./data/store.js";
import {linksAreMissing, look} from "./parts/view.js";

/** @import {OwnView, Part, State} from "./parts/view.js" */

// What changes while a reader points.
/** @type {Set<keyof State>} */
const POINTED = new Set(["preview", "overQuery", "overKey", "overLine"]);

/** What changed, drawn. Whoever points at a head or a token sees it at once, and a frame later what is told of it in
 * lists or drawn of it in small. Of a long text a head's map is drawn at once, and a frame later what is told of its
 * strongest links, which have to be looked for.
 * @param {OwnView} view @param {{first: Part[], later: Part[]}} parts */
export function createTurns(view, {first, later}) {
  /** @type {Set<keyof State>} */
  let unseen = new Set();
  let [next, searching] = [0, 0];
  const drawFirst = (/** @type {Set<keyof State>} */ changed) => {
    for (const part of first) part.draw(changed);
    for (const name of changed) unseen.add(name);
  };
  const drawLater = () => {
    cancelAnimationFrame(next);
    const changed = unseen;
    [unseen, next] = [new Set(), 0];
    for (const part of later) part.draw(changed);
  };
  const search = () => {
    const {head, rows, columns, stream} = view.now;
    if (head !== null) linksOf(head, rows, columns, stream);
    view.store.set({loaded: view.store.state.loaded + 1});
  };
  return {
    /** @param {Set<keyof State>} changed
     * @param {(view: OwnView) => void} choosePair  settles the pair that the head is told by */
    draw(changed, choosePair) {
      view.now = look(view.store.state, view.recording, true);
      cancelAnimationFrame(searching);
      if (linksAreMissing(view.recording, view.now)) {
        drawFirst(changed);
        searching = requestAnimationFrame(search);
        return;
      }
      if (hasAny(changed, "loaded", "stream", "layer", "head", "pairChosen")) choosePair(view);
      drawFirst(changed);
      if ([...changed].some((name) => !POINTED.has(name))) drawLater();
      else next ||= requestAnimationFrame(drawLater);
    },
    stop() {
      cancelAnimationFrame(next);
      cancelAnimationFrame(searching);
    },
  };
}
