// A page in another page's frame tells that page which head is chosen, once it has been asked to: numbers and a stream's
// name, never the text. The answer goes to the origin that asked, and only the page around the frame may ask.

/** @import {HeadChoice} from "../data/recording.js" */

/** @typedef {Pick<HeadChoice, "stream" | "layer" | "head" | "query" | "key">} Choice */

const ASKS = "attention_viz:listen";
const TELLS = "attention_viz:selection";

/** Listen for the page around this one. Returns what tells it of a choice. @param {() => Choice} chosen */
export function tellParent(chosen) {
  /** The origin that asked; a page without one, as from a disk, can't be named. @type {string | null} */
  let origin = null;
  const tell = () => {
    if (origin === null) return;
    const {stream, layer, head, query = null, key = null} = chosen();
    window.parent.postMessage({type: TELLS, stream, layer, head, query, key}, origin);
  };
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent || window.parent === window || event.data?.type !== ASKS) return;
    origin = event.origin === "null" ? "*" : event.origin;
    tell();
  });
  return tell;
}
