// Beside the picture: where the weight of the chosen patch goes, or who looks at it, and which heads look there most.

import {element, within} from "../parts/element.js";
import {hasAny} from "../data/store.js";
import {weightText} from "../data/scale.js";
import {layerNumber} from "../heads/numbers.js";
import {SHOWN_ROW, lineOf, overPatches, regionsOf} from "./patches.js";
import {lookedAt, lookedLine} from "./chosen.js";
import {nameOfPatch, whereFrom} from "./telling.js";

/** @import {Part, View} from "../parts/view.js"
 * @import {Patches, Region} from "./patches.js" */

/** @typedef {Pick<View, "store" | "recording" | "now" | "choose" | "preview">} ListsView */
/** @typedef {{label: string, weight: number, even?: number, layer?: number, head?: number}} Line */

const [MOST_LINES, MOST_LOOKING, MOST_PARTS, MOST_BESIDE] = [8, 9, 3, 5];

/** The two lists. @param {ListsView} view @param {Patches} patches @returns {Part} */
export function createPictureLists(view, patches) {
  const goes = element("section", {class: "av-list"});
  const heads = element("section", {class: "av-list av-links", "data-testid": "picture-heads"});
  heads.onclick = (event) => {
    const line = within(event, "[data-head]");
    if (line) view.choose({layer: Number(line.dataset["layer"]), head: Number(line.dataset["head"])});
  };
  return {
    node: element("div", {class: `av-bars${patches.sheet ? " av-of-sheet" : ""}`}, goes, heads),
    draw(changed) {
      if (!hasAny(changed, ...SHOWN_ROW, "overKey", "direction")) return;
      const {head} = view.now;
      if (head === null) return;
      const {position: chosen, direction} = lookedAt(view, patches);
      const line = lookedLine(view, patches);
      const regions = regionsOf(overPatches(line, patches), patches);
      const [title, lines] =
        direction === "to"
          ? ["Attended by", lookers(view, line, chosen, patches)]
          : [
              "Attends to",
              parts(view, {line, regions, chosen}, patches, head.sum(chosen, Int32Array.from(line.keys()))),
            ];
      fillList(
        goes,
        title,
        direction !== "to"
          ? "tick: an even share"
          : patches.joint
            ? "each word’s weight"
            : "the largest weight from each place",
        lines,
      );
      fillList(
        heads,
        direction === "to" ? "Heads that attend to it" : "Heads that attend there",
        "",
        ranked(view, chosen, regions, patches),
      );
    },
  };
}

/** @param {ListsView} view @param {{line: Float32Array, regions: Region[], chosen: number}} row
 * @param {Patches} patches
 * @param {number} whole  what the row sums to: hundreds of weights that are each rounded don't add up to it
 * @returns {Line[]} */
function parts({now}, {line, regions, chosen}, patches, whole) {
  const even = (/** @type {Region[]} */ some) => some.reduce((sum, one) => sum + one.patches.length, 0) / patches.count;
  const share = regions.reduce((sum, one) => sum + one.share, 0);
  const rest = patches.others.reduce((left, position) => left - line[position], whole - share);
  const many = regions.length > MOST_PARTS;
  const others = [...patches.others];
  if (patches.joint) others.sort((one, other) => line[other] - line[one]).splice(MOST_BESIDE);
  const open = others.filter((position) => !patches.joint || line[position] > 0);
  return [
    ...(many ? [{label: `${regions.length} regions`, weight: share, even: even(regions)}] : regions.map(lineOfRegion)),
    ...open.map((position) => ({
      label: nameOfPatch(patches, now.stream.keys, position),
      weight: line[position],
    })),
    {label: "the other patches", weight: Math.max(0, rest), even: 1 - even(regions)},
  ];
  /** @param {Region} region @returns {Line} */
  function lineOfRegion(region) {
    const count = region.patches.length;
    const where = region.patches.includes(patches.numbers[chosen])
      ? "around itself"
      : whereFrom(region.patches, patches.numbers[chosen], patches);
    // On a sheet the image's name needs the room.
    const label = patches.sheet ? where : `${count === 1 ? "patch" : "region"} ${where}`;
    return {label, weight: region.share, even: even([region])};
  }
}

/** What gives the most to the chosen position: each word of a text, or the largest weight from each place of the picture
 * and from what is no patch.
 * @param {ListsView} view @param {Float32Array} line @param {number} chosen @param {Patches} patches
 * @returns {Line[]} */
function lookers({now}, line, chosen, patches) {
  /** @type {Map<string, number>} */
  const most = new Map();
  const named = (/** @type {number} */ position) => nameOfPatch(patches, now.stream.keys, position);
  for (const position of patches.joint ? patches.others : line.keys()) {
    const number = patches.numbers[position];
    const label =
      number < 0
        ? named(position)
        : position === chosen
          ? "itself"
          : `patch ${whereFrom([number], patches.numbers[chosen], patches)}`;
    most.set(label, Math.max(most.get(label) ?? 0, line[position]));
  }
  const lines = Array.from(most, ([label, weight]) => ({label, weight}));
  return lines.sort((one, other) => other.weight - one.weight).slice(0, MOST_LINES);
}

/** The heads that have been read, by what the chosen position gives to the regions, or by the largest that it is given.
 * @param {ListsView} view @param {number} chosen @param {Region[]} regions @param {Patches} patches @returns {Line[]} */
function ranked(view, chosen, regions, patches) {
  const {recording, now} = view;
  const {stream} = now;
  const {direction} = lookedAt(view, patches);
  const keys = regions.flatMap((one) => one.patches.map((at) => patches.positions[at]));
  const found = stream.layers.flatMap(({heads}, layer) =>
    Array.from({length: heads}, (_, number) => {
      const head = recording.head({stream: stream.name, layer, head: number});
      if (head === null) return [];
      const weight =
        direction === "to"
          ? lineOf(head, chosen, stream.keys.count, "to").reduce((so, one) => Math.max(so, one), 0)
          : keys.reduce((sum, key) => sum + head.at(chosen, key), 0);
      return [{label: `${layerNumber(stream.layers, layer)}\u00b7${number}`, weight, layer, head: number}];
    }).flat(),
  );
  return found.sort((one, other) => other.weight - one.weight).slice(0, MOST_LOOKING);
}

/** @param {HTMLElement} place @param {string} title @param {string} note @param {Line[]} lines */
function fillList(place, title, note, lines) {
  const heading = element("header", {}, element("h2", {}, title), element("span", {class: "av-sum"}, note));
  place.replaceChildren(heading, element("ol", {}, ...lines.map(lineNode)));
}

/** @param {Line} line */
function lineNode({label, weight, even, layer, head}) {
  const fillNode = element("span", {class: "av-fill av-accent-fill"});
  fillNode.style.width = `${Math.min(100, 100 * weight)}%`;
  const tick = even === undefined ? null : element("i", {class: "av-even"});
  if (tick && even !== undefined) tick.style.left = `${100 * even}%`;
  const called =
    layer === undefined
      ? element("span", {class: "av-quiet", title: label}, label)
      : element("button", {type: "button", class: "av-pair", "data-layer": layer, "data-head": head ?? 0}, label);
  return element(
    "li",
    {},
    called,
    element("span", {class: "av-track"}, fillNode, tick),
    element("span", {class: "av-number", title: weight.toPrecision(4)}, weightText(weight)),
  );
}
