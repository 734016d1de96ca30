// Beside a picture: the class token and registers, and how weights are laid over it.

import {element} from "../parts/element.js";
import {segments} from "../parts/controls.js";
import {weightText} from "../data/scale.js";
import {chosenPosition, pinPatch} from "./chosen.js";
import {lineOf} from "./patches.js";

/** @import {StageView} from "./chosen.js"
 * @import {Patches} from "./patches.js" */

/** The chips of what is no patch, and how the weights are laid over the picture.
 * @param {StageView} view @param {Patches} patches */
export function createTools(view, patches) {
  const {store} = view;
  const {labels} = view.now.stream.queries;
  const chips = patches.others.map((position) => createChip(view, position, labels[position]));
  const direction = segments(
    "",
    [
      {value: "from", label: "attends to", title: "Weights from the chosen patch: its row"},
      {value: "to", label: "attended by", title: "Weights to the chosen patch: its column"},
    ],
    (value) => {
      const chosen = chosenPosition(view);
      store.set({direction: value === "to" ? "to" : "from"});
      pinPatch(view, chosen);
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
  const darkness = element("label", {class: "av-check"}, "darkness", strength);
  const shading = element("div", {class: "av-picture-tools"}, smooth.node, darkness);
  const select = () => {
    const {state} = store;
    direction.select(state.direction);
    smooth.select(state.smooth ? "on" : "off");
    strength.value = String(state.strength);
    const chosen = chosenPosition(view);
    const line = view.now.head && lineOf(view.now.head, chosen, view.now.stream.keys.count, state.direction);
    for (const {chip, share, position} of chips) {
      chip.setAttribute("aria-pressed", String(position === chosen));
      share.textContent = line ? weightText(line[position]) : "";
    }
  };
  return {tools, shading, select};
}

/** A position that is no patch, and how much it has.
 * @param {StageView} view @param {number} position @param {string} label */
function createChip(view, position, label) {
  const share = element("span", {});
  const summary = label === "[CLS]";
  const title = summary ? "[CLS]: a summary slot without a place in the image" : null;
  const chip = element(
    "button",
    {type: "button", class: "av-chip", "data-position": position, "aria-pressed": "false", title},
    summary ? "class token" : label,
    share,
  );
  chip.onclick = () => pinPatch(view, position);
  chip.onpointerenter = (/** @type {PointerEvent} */ event) =>
    event.pointerType === "mouse" && view.point({query: position, key: null});
  chip.onpointerleave = () => view.point({query: null, key: null});
  return {chip, share, position};
}
