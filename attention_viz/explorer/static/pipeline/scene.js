// The drawing of the pipeline: marks with what they belong to, and places that tell something when pointed at.

import {svg} from "../parts/element.js";

/** @import {Places} from "./geometry.js"
 * @import {Marks} from "../parts/element.js" */

/** A piece of a sentence, plain or with a class. @typedef {string | [text: string, role: string]} Said */

/** A place of the drawing that tells something.
 * @typedef {object} Hit
 * @property {string} group  places of a group follow each other by the arrow keys
 * @property {string[]} tags  of the marks that stay while the rest fades
 * @property {Said[]} told  the line of arithmetic
 * @property {string} from  where its numbers come from
 * @property {string} to  where they go
 * @property {number} [key]  the key that a press chooses */

/** @typedef {{x: number, y: number, width: number, height: number}} Box */

/** @typedef {object} Scene
 * @property {SVGSVGElement} root
 * @property {[node: SVGElement, tags: string[]][]} marks
 * @property {Map<Element, Hit>} hits
 * @property {Map<string, SVGElement[]>} titles  by the name of the step
 * @property {(tags: string, ...nodes: (SVGElement | null)[]) => void} add  with the tags of the marks, apart by spaces
 * @property {(box: Box, hit: Hit, kind?: string) => void} hit
 * @property {(name: string, text: string, x: number, y: number, more?: TitleLooks) => void} title */

/** @typedef {{role?: string, below?: string, mono?: boolean, end?: boolean}} TitleLooks */

/** @type {CanvasRenderingContext2D | null} */
let pencil = null;

/** Words of some classes that begin at a place, or are anchored there otherwise.
 * @param {number} x @param {number} y @param {string} kind @param {string} words @param {string | null} anchor */
export function label(x, y, kind, words, anchor = null) {
  return svg("text", {x: tidy(x), y: tidy(y), class: kind, "text-anchor": anchor}, words);
}

/** A bar from 0 to a length to the right, or to the left where that is negative.
 * @param {number} x @param {number} y @param {number} length @param {number} height @param {string} kind
 * @param {Marks} more */
export function bar(x, y, length, height, kind, more = {}) {
  const width = Math.max(0.6, Math.abs(length));
  const left = length < 0 ? x - width : x;
  const box = {x: tidy(left), y: tidy(y), width: tidy(width), height: tidy(height), rx: Math.min(2, height / 3)};
  return svg("rect", {...box, class: kind, ...more});
}

/** An upright bar from 0 up, or down where the number is negative.
 * @param {number} x @param {number} y @param {number} width @param {number} length @param {string} kind */
export function upright(x, y, width, length, kind) {
  const height = Math.abs(length);
  return svg("rect", {
    x: tidy(x),
    y: tidy(length > 0 ? y - height : y),
    width: tidy(width),
    height: tidy(height),
    class: kind,
  });
}

/** A line of the flow, with an arrow's head where it ends.
 * @param {string} path @param {string} kind @param {number} width
 * @param {{x: number, y: number, towards: "right" | "down" | "up"} | null} head */
export function flow(path, kind, width, head = null) {
  const line = svg("path", {d: path, class: `av-flow ${kind}`, "stroke-width": tidy(width)});
  if (!head) return line;
  const turn = {right: 0, down: 90, up: -90}[head.towards];
  const place = `translate(${tidy(head.x)} ${tidy(head.y)}) rotate(${turn})`;
  return svg("g", {}, line, svg("path", {d: "M-8 -4.5L0 0L-8 4.5z", class: `av-flow-head ${kind}`, transform: place}));
}

/** @param {number} number */
export function tidy(number) {
  return Math.round(number * 100) / 100;
}

/** How wide words are, in pixels. @param {string} words @param {string} font */
export function widthOf(words, font) {
  pencil ??= document.createElement("canvas").getContext("2d");
  if (!pencil) return words.length * 8;
  pencil.font = font;
  return pencil.measureText(words).width;
}

/** A word cut to what there is room for. @param {string} word @param {number} signs */
export function cut(word, signs) {
  const all = [...word];
  return all.length <= signs ? word : `${all.slice(0, Math.max(1, signs - 1)).join("")}\u2026`;
}

/** An empty drawing. @param {SVGSVGElement} root @returns {Scene} */
export function createScene(root) {
  /** @type {Scene} */
  const scene = {
    ...{root, marks: [], hits: new Map(), titles: new Map()},
    add(tags, ...nodes) {
      for (const node of nodes) {
        if (!node) continue;
        node.classList.add("av-part");
        scene.marks.push([node, tags.split(" ")]);
        root.append(node);
      }
    },
    hit(box, hit, kind = "") {
      const told = hit.told.map((one) => (typeof one === "string" ? one : one[0])).join("");
      const role = hit.key === undefined ? "img" : "button";
      const node = svg("rect", {...box, class: `av-hit ${kind}`, role, "aria-label": told, tabindex: -1, rx: 4});
      scene.hits.set(node, hit);
      root.append(node);
    },
    title(name, text, x, y, {role = "", below = "", mono = false, end = false} = {}) {
      const width = widthOf(text, "650 13.5px system-ui, sans-serif");
      const left = end ? x - width - 26 : x;
      const nodes = [label(left, y, `av-title ${role}`, text)];
      if (name) nodes.push(opener(name, text, left + width + 7, y - 13));
      if (below) nodes.push(label(x, y + 17, `av-below ${mono ? `${role} av-mono` : ""}`, below, end ? "end" : null));
      scene.titles.set(name || text, nodes);
    },
  };
  return scene;
}

/** The small button that opens a step's whole matrix.
 * @param {string} name @param {string} text @param {number} x @param {number} y */
function opener(name, text, x, y) {
  const grid = svg("path", {d: "M4 4.5h9v8h-9zM8.5 4.5v8M4 8.5h9"});
  const at = {transform: `translate(${tidy(x)} ${tidy(y)})`, tabindex: 0, role: "button"};
  return svg(
    "g",
    {class: "av-open", "data-open": name, ...at, "aria-label": `${text}: the whole matrix`},
    svg("title", {}, "The whole matrix"),
    svg("rect", {width: 17, height: 17, rx: 4}),
    grid,
  );
}

/** Where the parts stand one below the other, an arrow from each to the next.
 * @param {Scene} scene @param {Places} places */
export function drawDescent({add}, {width, sum, row, values}) {
  const x = tidy(width / 2);
  for (const [{top}, tags] of /** @type {const} */ ([
    [sum, "product"],
    [row, "chain-allowed"],
    [values, "weight"],
  ]))
    add(tags, flow(`M${x} ${tidy(top - 72)}v18`, "av-more", 3, {x: width / 2, y: top - 48, towards: "down"}));
}

/** Put the titles into the drawing, in the order in which the steps are told, and let the Tab key come to each group.
 * @param {Scene} scene @param {[name: string, label: string][]} steps */
export function finish({root, titles, hits}, steps) {
  const order = [...steps.map(([name]) => name), ...titles.keys()];
  root.append(...[...new Set(order)].flatMap((name) => titles.get(name) ?? []));
  const reached = new Set();
  for (const [node, {group}] of hits) {
    if (!reached.has(group)) node.setAttribute("tabindex", "0");
    reached.add(group);
  }
}
