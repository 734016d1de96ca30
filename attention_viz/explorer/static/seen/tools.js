// Beside a picture: the class token and registers, and how weights are laid over it.

import {element} from "../parts/element.js";
import {segments} from "../parts/controls.js";
import {weightText} from "../data/scale.js";
import {lookedAt, lookedLine, pinPatch} from "./chosen.js";

/** @import {StageView} from "./chosen.js"
 * @import {Patches} from "./patches.js" */

/** The chips of what is no patch, and how the weights are laid over the picture.
 * @param {StageView} view @param {Patches} patches */
export function createTools(view, patches) {
  const {store} = view;
  const {labels} = view.now.stream.queries;
  const apart = patches.joint ? [] : patches.others;
  const chips = apart.map((position) => createChip(view, patches, position, labels[position]));
  const direction = segments(
    "",
    [
      {value: "from", label: "attends to", title: "Weights from the chosen patch: its row"},
      {value: "to", label: "attended by", title: "Weights to the chosen patch: its column"},
    ],
    (value) => {
      const {position} = lookedAt(view, patches);
      store.set({direction: value === "to" ? "to" : "from"});
      pinPatch(view, patches, position);
    },
  );
  const smooth = segments(
    "",
    [
      {value: "on", label: "smooth", title: "Blends from patch to patch; adds no information"},
      {value: "off", label: "patches", title: "Each patch as one square"},
    ],
    (value) => store.set({smooth: value === "on"}),
  );
  const strength = element("input", {type: "range", min: 0, max: 100, "aria-label": "Darkness without weight"});
  strength.oninput = () => store.set({strength: Number(strength.value)});
  const tools = element("div", {class: "av-picture-tools"}, ...chips.map(({chip}) => chip), direction.node);
  tools.hidden = patches.joint; // the words have a line of their own
  const darkness = element("label", {class: "av-check"}, "darkness", strength);
  const shading = element("div", {class: "av-picture-tools"}, smooth.node, darkness);
  const select = () => {
    const {state} = store;
    direction.select(state.direction);
    smooth.select(state.smooth ? "on" : "off");
    strength.value = String(state.strength);
    const chosen = lookedAt(view, patches).position;
    const line = lookedLine(view, patches);
    for (const {chip, share, position} of chips) {
      chip.setAttribute("aria-pressed", String(position === chosen));
      share.textContent = view.now.head ? weightText(line[position]) : "";
    }
  };
  return {tools, shading, select};
}

/** A position that is no patch, and how much it has.
 * @param {StageView} view @param {Patches} patches @param {number} position @param {string} label */
function createChip(view, patches, position, label) {
  const share = element("span", {});
  const summary = label === "[CLS]";
  const title = summary ? "[CLS]: a summary slot without a place in the image" : null;
  const chip = element(
    "button",
    {type: "button", class: "av-chip", "data-position": position, "aria-pressed": "false", title},
    summary ? "class token" : label,
    share,
  );
  chip.onclick = () => pinPatch(view, patches, position);
  chip.onpointerenter = (/** @type {PointerEvent} */ event) =>
    event.pointerType === "mouse" && view.point({query: position, key: null});
  chip.onpointerleave = () => view.point({query: null, key: null});
  return {chip, share, position};
}
