// A token as parts of a sentence: what comes before it, and itself.

import {element} from "../parts/element.js";

/** A word in quotes, with nothing before it; what stands in a picture or a sound by its place.
 * @param {string} name  the word, numbered if it repeats
 * @param {string | null | undefined} placed  as `placeInWords` says it
 * @param {string} role @returns {[string, HTMLElement]} */
export function tokenParts(name, placed, role) {
  return placed ? partsOfPlace(placed, role) : ["", element("bdi", {class: role}, `\u201c${name}\u201d`)];
}

/** What comes before, and what is coloured: "patch " and "3, 5"; of a frame nothing and "1.20 s".
 * @param {string} placed  as `placeInWords` says it
 * @param {string} role @returns {[string, HTMLElement]} */
function partsOfPlace(placed, role) {
  const before = placed.startsWith("patch ") ? "patch " : "";
  return [before, element("bdi", {class: role}, placed.slice(before.length))];
}
