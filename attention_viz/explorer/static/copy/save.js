// A file that the browser saves.

import {element} from "../parts/element.js";

// Milliseconds in which a browser has begun to save.
const BEGUN = 4000;

/** @param {Blob} content @param {string} name */
export function saveAs(content, name) {
  const address = URL.createObjectURL(content);
  element("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), BEGUN);
}
