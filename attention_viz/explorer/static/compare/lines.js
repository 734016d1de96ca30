// Both texts in full, the words marked that differ.

import {element} from "../parts/element.js";

/** What marks a changed word, for those who don't see its colour.
 * @type {Record<string, string>} */
const CHANGES = {swapped: "replaced", alone: "only here"};

// A text of more pieces is small, and its words have no numbers.
const LONG = 120;

/** @param {{name: string, text: [text: string, change?: string, number?: string][]}[]} sides */
export function textLines(sides) {
  return sides.map(({name, text}, side) => {
    const words = text.length ? element("span", {class: "av-whole", dir: "auto"}, ...text.map(textPiece)) : name;
    const isLong = text.length > LONG;
    return element("li", isLong ? {class: "av-long", tabindex: 0} : {}, element("b", {}, String(side + 1)), words);
  });
}

/** Scroll each text to its first change. @param {HTMLElement} list */
export function showChanges(list) {
  for (const line of list.children) {
    const change = /** @type {HTMLElement | null} */ (line.querySelector("mark"));
    if (change) line.scrollTop = change.offsetTop - change.offsetHeight;
  }
}

/** @param {[text: string, change?: string, number?: string]} piece */
function textPiece([text, change = "", number = ""]) {
  if (!change && !number) return text;
  const inner = [text, ...(number ? [element("span", {class: "av-quiet", "aria-hidden": "true"}, number)] : [])];
  if (!change) return element("span", {}, ...inner);
  return element("mark", {class: `av-${change}`, title: CHANGES[change]}, ...inner);
}
