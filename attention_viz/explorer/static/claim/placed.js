// A token as parts of a sentence: what comes before it, and itself.

import {element} from "../parts/element.js";
import {whichOf} from "./ordinal.js";

/** Which of several equal words, and the word in quotes; what stands in a picture or a sound by its place.
 * @param {string[]} words  all that may be equal
 * @param {number} at
 * @param {string} text  the word as it is written
 * @param {string | null | undefined} placed  as `placeInWords` says it
 * @param {string} role @returns {[string, HTMLElement]} */
export function tokenParts(words, at, text, placed, role) {
  if (placed) return partsOfPlace(placed, role);
  return [whichOf(words, at), element("bdi", {class: role}, `\u201c${text}\u201d`)];
}

/** What comes before, and what is coloured: "patch " and "3, 5"; of a frame nothing and "1.20 s".
 * @param {string} placed  as `placeInWords` says it
 * @param {string} role @returns {[string, HTMLElement]} */
function partsOfPlace(placed, role) {
  const before = placed.startsWith("patch ") ? "patch " : "";
  return [before, element("bdi", {class: role}, placed.slice(before.length))];
}
