// What becomes of the model without the head on the screen: asked for by a button, answered in its place.

import {element} from "../parts/element.js";
import {said} from "./said.js";
import {layerNumber} from "../heads/numbers.js";

/** @import {Part, View, Writes} from "../parts/view.js" */

/** A host's answer, with the layer by its number. The host is asked by opening "matters".
 * @typedef {{stream: string, layer: number, head: number, parts: [text: string, role: string][]}} Outcome */

/** @typedef {Pick<View, "recording" | "now" | "open"> & Writes<"matters">} MattersView */

/** The button, and the answer in its place; null where there is no host to ask. @param {MattersView} view
 * @returns {Part | null} */
export function createMatters(view) {
  const {store, recording, open} = view;
  if (!open) return null;
  const button = element("button", {type: "button", class: "av-how", "data-testid": "explorer-matters"});
  button.textContent = "Does it matter?";
  button.title = "Ablate this head and see what changes";
  button.onclick = () => {
    const {stream, layer, head} = store.state;
    const number = layerNumber(recording.stream(stream).layers, layer);
    const waits = said`Running the model without ${`${number}\u00b7${head}`} \u2026`;
    store.set({matters: {stream, layer: number, head, parts: waits}});
    open("matters");
  };
  const words = element("span", {role: "status", "data-testid": "explorer-outcome"});
  const more = element("button", {type: "button", class: "av-how"}, "More on Heads");
  more.onclick = () => open("silence");
  const node = element("div", {class: "av-matters"}, button, words, more);
  return {
    node,
    draw() {
      const {stream, head, layer, matters} = store.state;
      const number = layerNumber(recording.stream(stream).layers, layer);
      const here = matters?.stream === stream && matters.layer === number && matters.head === head;
      // All heads together can't be ablated as one.
      node.hidden = Boolean(recording.header.reading?.together) || Boolean(view.now.stream.signed);
      button.hidden = here;
      more.hidden = !here;
      const parts = here ? matters.parts : [];
      words.replaceChildren(
        ...parts.map(([text, role]) =>
          role === "next" || role === "query" ? element("bdi", {class: `av-${role}`}, text) : text,
        ),
      );
    },
  };
}
