// A lesson's text: elements by name from a short list, and all words only ever as text.

import {element} from "../parts/element.js";

/** @typedef {[tag: string, attributes: Record<string, string>, children: (ProseNode | string)[]]} ProseNode */

const TAGS = new Set("p ul ol li em strong code span br table thead tbody tr th td".split(" "));
const ATTRIBUTES = new Set(["class", "tabindex", "role", "display", "style", "mathvariant", "stretchy", "fence"]);
// The name of MathML's space, as the browser has it: the page names no host.
/** @type {string | null} */
let mathSpace = null;

/** Show a text, unless it is there already. @param {HTMLElement} place @param {ProseNode[]} text */
export function drawProse(place, text) {
  const key = JSON.stringify(text);
  if (place.dataset["key"] === key) return;
  place.dataset["key"] = key;
  place.replaceChildren(...text.map((node) => makeProse(node, false)));
}

/** @param {ProseNode} node @param {boolean} inMath @returns {Element} */
function makeProse([tag, attributes, children], inMath) {
  const math = inMath || tag === "math";
  const made = math ? makeMath(tag) : element(/** @type {"p"} */ (TAGS.has(tag) ? tag : "span"));
  for (const [name, value] of Object.entries(attributes))
    if (ATTRIBUTES.has(name) || math) setPlainly(made, name, value);
  made.append(...children.map((child) => (typeof child === "string" ? child : makeProse(child, math))));
  return made;
}

/** @param {string} tag */
function makeMath(tag) {
  mathSpace ??= new DOMParser().parseFromString("<math>", "text/html").querySelector("math")?.namespaceURI ?? null;
  return document.createElementNS(mathSpace, /^m[a-z]+$/.test(tag) ? tag : "mrow");
}

/** Set an attribute that can't run anything. @param {Element} made @param {string} name @param {string} value */
function setPlainly(made, name, value) {
  if (/^(on|href|src|xmlns)/.test(name)) return;
  if (name === "style" && made instanceof HTMLElement) made.style.cssText = value;
  else made.setAttribute(name, value);
}
