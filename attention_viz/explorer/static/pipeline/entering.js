// What enters the layer at the two positions, and its way to the query and the key.

import {flow, label, tidy} from "./scene.js";
import {svg} from "../parts/element.js";
import {rowOf} from "./numbers.js";

/** @import {Places} from "./geometry.js"
 * @import {Opened, PackedMixer, Pair} from "./numbers.js"
 * @import {Rest} from "./rest.js"
 * @import {Box, Said, Scene} from "./scene.js" */

/** @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Places} places @param {Rest | null} rest
 *   without a softmax what enters comes with it */
export function drawEntering(scene, opened, pair, places, rest) {
  const {header, queries, keys} = opened;
  const {top, room, entering, factors, narrow} = places;
  const wide = narrow ? 14 : 20;
  const count = header.mixer ? rest?.header.width : header.widths.query;
  const title = header.mixer ? "Layer\u2019s input" : "Embeddings";
  scene.title(header.mixer ? "" : "embeddings", title, entering.x, 16, {
    below: count && !narrow ? `${count} each` : "",
  });
  const strips = /** @type {const} */ ([
    ["query", "av-q", "embeddings", header.queries.indexOf(pair.query), queries.names[pair.query], "W_Q"],
    ["key", "av-k", "entering", header.keys.indexOf(pair.key), keys.names[pair.key], "W_K"],
  ]);
  const bottom = top + room;
  const rotated = header.steps.some(([name]) => name === "rotated");
  for (const [number, [side, role, name, row, word, matrix]] of strips.entries()) {
    const x = entering.x + number * (wide + 6);
    const vector = header.mixer ? enteredAt(rest, pair[side]) : rowOf(opened, name, row);
    const box = {x, y: top, width: wide, height: room};
    if (vector) scene.add(`enters-${side}`, stripOf(vector, box, role));
    else scene.add(`enters-${side}`, svg("rect", {...box, class: "av-unknown"}));
    const turned = rotated ? ", then rotated by position" : "";
    const by = header.known.includes(side) ? ` \u00b7 ${matrix}` : "";
    const made = header.mixer
      ? mixedInput(header.mixer, count)
      : `${header.widths[side]} numbers become ${header.d_k}${turned}`;
    /** @type {Said[]} */
    const told = vector ? [[word, role], `${by}: ${made}`] : ["This layer\u2019s input was not recorded"];
    const from = header.layer > 0 ? "earlier layers" : "word and position";
    scene.hit(box, {group: "enters", tags: [`enters-${side}`, side], told, from, to: side});
  }
  if (!header.d_k) return;
  const left = entering.x + 2 * wide + 10;
  const middle = top + room * 0.44;
  scene.add(
    "enters-query query",
    flow(`M${left} ${middle}H${factors.x - 12}`, "av-q", 2.5, {x: factors.x - 8, y: middle, towards: "right"}),
  );
  const target = factors.x + factors.width * 0.45;
  const [start, low] = [entering.x + wide * 1.5 + 6, bottom + 18];
  const path = `M${start} ${bottom + 4}V${low - 8}Q${start} ${low} ${start + 8} ${low}H${target - 8}Q${target} ${low} ${target} ${low - 8}V${bottom + 8}`;
  scene.add("enters-key key", flow(path, "av-k", 2.5, {x: target, y: bottom + 4, towards: "up"}));
  // Below the vectors, which stand there as they were turned.
  if (rotated) scene.title("rotated", "Rotated", target + 14, bottom + 24);
  if (narrow) return;
  if (header.known.includes("query")) scene.add("enters-query query", subscripted(left + 8, middle - 8, "av-q", "Q"));
  if (header.known.includes("key")) scene.add("enters-key key", subscripted(start + 22, low - 6, "av-k", "K"));
}

/** What enters a layer without a softmax at a token, which isn't recorded with its call.
 * @param {Rest | null} rest @param {number} at */
function enteredAt(rest, at) {
  const row = rest?.header.queries?.indexOf(at) ?? -1;
  return rest && row >= 0 ? rowOf(rest, "strip 0", row) : null;
}

/** @param {PackedMixer} mixer @param {number | null | undefined} count */
function mixedInput({convolved}, count) {
  const over = convolved > 1 ? `, mixed over the last ${convolved} tokens` : "";
  return `the layer makes query, key and value from ${count} numbers${over}`;
}

/** W with an index. @param {number} x @param {number} y @param {string} role @param {string} index */
function subscripted(x, y, role, index) {
  const node = label(x, y, `av-below ${role}`, "W");
  node.append(svg("tspan", {dy: 3, class: "av-index"}, index));
  return node;
}

/** How large a number of a vector has the full colour. @param {Float32Array} vector */
export function fullOf(vector) {
  const sizes = [...vector].map(Math.abs).sort((one, other) => one - other);
  // A few numbers of a hidden state are often a hundred times the others: they may be as deep as it gets.
  return sizes[Math.floor((sizes.length - 1) * 0.97)] || 1;
}

/** A vector as a strip of colours: the stronger, the further from 0; grey where it is less than that.
 * @param {Float32Array} vector @param {Box} box @param {string} role
 * @param {number} full  how large a number has the full colour */
export function stripOf(vector, {x, y, width, height}, role, full = fullOf(vector)) {
  const each = height / vector.length;
  const parts = [...vector].map((number, at) =>
    svg("rect", {
      ...{x, width, y: tidy(y + at * each), height: tidy(each + 0.3)},
      class: `av-solid ${number < 0 ? "av-less" : role}`,
      "fill-opacity": tidy(Math.min(1, Math.abs(number) / full)),
    }),
  );
  return svg("g", {}, ...parts, svg("rect", {x, y, width, height, class: "av-frame"}));
}
