// Both texts in full, the words marked that differ.

import {element} from "../parts/element.js";

/** What marks a changed word, for those who don't see its colour.
 * @type {Record<string, string>} */
const CHANGES = {swapped: "replaced", alone: "only here"};

/** @param {{name: string, text: [text: string, change?: string, number?: string][]}[]} sides */
export function textLines(sides) {
  return sides.map(({name, text}, side) => {
    const words = text.length ? element("span", {class: "av-whole", dir: "auto"}, ...text.map(textPiece)) : name;
    return element("li", {}, element("b", {}, String(side + 1)), words);
  });
}

/** @param {[text: string, change?: string, number?: string]} piece */
function textPiece([text, change = "", number = ""]) {
  if (!change && !number) return text;
  const inner = [text, ...(number ? [element("span", {class: "av-quiet", "aria-hidden": "true"}, number)] : [])];
  if (!change) return element("span", {}, ...inner);
  return element("mark", {class: `av-${change}`, title: CHANGES[change]}, ...inner);
}
