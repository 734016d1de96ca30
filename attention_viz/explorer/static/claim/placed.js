// What stands in a picture or a sound, as parts of a sentence.

import {element} from "../parts/element.js";

/**
 * What comes before, and what is coloured: "patch " and "3, 5"; of a frame nothing and "1.20 s".
 * @param {string} placed  as `placeInWords` says it
 * @param {string} role
 * @returns {[string, HTMLElement]}
 */
export function partsOfPlace(placed, role) {
  const before = placed.startsWith("patch ") ? "patch " : "";
  return [before, element("bdi", {class: role}, placed.slice(before.length))];
}
