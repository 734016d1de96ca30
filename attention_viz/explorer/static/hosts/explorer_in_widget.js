// The explorer as a widget of a notebook. The model holds text and selection; heads, findings and rankings are messages.

import {follow} from "./following.js";
import {hearModel, openPlace, placedOnPage, themeAround, watchTheme} from "./widget.js";
import {mountExplorer} from "../explorer.js";
import {element} from "../parts/element.js";

/** @import {Ranking} from "../data/recording.js"
 * @import {Showing} from "./loading.js" */

/** What Python sends; a packet's bytes come beside it. @typedef {{kind: string, words?: string, ranking?: Ranking, found?: string}} Message */

/** @param {Showing} showing */
export default function explorerInWidget({model, el, style}) {
  const ends = new AbortController();
  const place = openPlace(el, style);
  const load = once(async () => {
    await placedOnPage(place, ends.signal);
    if (!ends.signal.aborted) start(model, el, place, ends.signal);
  });
  const show = () => {
    if (sizeOf(model.get("_data")) > 0)
      load().catch((error) => {
        console.error(error);
        place.replaceChildren(element("p", {role: "alert"}, `The explorer could not be drawn: ${error.message}`));
      });
    else model.send({kind: "data"});
  };
  hearModel(model, "change:_data", show, ends.signal);
  show();
  return () => ends.abort();
}

/** @param {Showing["model"]} model @param {HTMLElement} el @param {HTMLElement} place @param {AbortSignal} signal */
function start(model, el, place, signal) {
  const theme = () => themeAround(model, el);
  const explorer = follow((hosting) => mountExplorer(place, bytesOf(model.get("_data")), {...hosting, theme}), {
    first: sizeOf(model.get("_head")) ? bytesOf(model.get("_head")) : null,
    selection: () => model.get("selection"),
    select(selection) {
      model.set("selection", selection);
      model.save_changes();
    },
    listen: (hear) => hearModel(model, "change:selection", hear, signal),
    send: (question) => model.send(question),
    receive(take) {
      const hear = (/** @type {Message} */ message, /** @type {DataView[]} */ buffers) => {
        if (message.kind === "refused") refuse(place, message.words ?? "");
        take({
          ...(buffers?.length ? {packet: bytesOf(buffers[0])} : {}),
          ...(message.ranking ? {ranking: message.ranking} : {}),
          ...(message.found ? {findings: JSON.parse(message.found)} : {}),
        });
      };
      hearModel(model, "msg:custom", hear, signal);
    },
  });
  let shown = theme();
  watchTheme(() => {
    if (theme() === shown) return;
    shown = theme();
    explorer.refresh();
  }, signal);
  signal.addEventListener("abort", explorer.destroy);
  // What takes Python longer comes after the first picture.
  requestAnimationFrame(() => setTimeout(() => model.send({kind: "rest"})));
}

/** Say why a head can't be shown. @param {HTMLElement} place @param {string} words */
function refuse(place, words) {
  place.querySelector("[role=alert]")?.remove();
  place.append(element("p", {role: "alert"}, words));
}

/** Do something once. @param {() => Promise<void>} work */
function once(work) {
  /** @type {Promise<void> | null} */
  let done = null;
  return () => (done ??= work());
}

/** @param {DataView | null | undefined} view */
function sizeOf(view) {
  return view?.byteLength ?? 0;
}

/** Hosts hand over bytes as views of buffers that may hold more. @param {DataView} view */
function bytesOf(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
