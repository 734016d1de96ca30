// Buttons that take the headline with its arcs along: as a picture on the clipboard, or as an SVG file.

import {drawCopy} from "./drawing.js";
import {saveAs} from "./save.js";
import {element} from "../parts/element.js";

/** @import {Run} from "./drawing.js"
 * @import {Part, View} from "../parts/view.js" */

const SHARPNESS = 2;
const SAID = {
  failed: "This browser can't make the picture; save the SVG",
  copied: "Copied",
  saved: "Saved as a file: this browser's clipboard takes no pictures here",
};
const TOLD_FOR = 4000;

/** @param {Pick<View, "root" | "now" | "colours" | "store">} view @returns {Part} */
export function createCopy(view) {
  const attributes = {type: "button", class: "av-take"};
  const copy = element("button", {...attributes, "data-testid": "explorer-copy"}, "Copy picture");
  const save = element("button", {...attributes, "data-testid": "explorer-save"}, "Save SVG");
  const said = element("span", {class: "av-quiet", role: "status"});
  const node = element("div", {class: "av-taking"}, copy, save, said);
  const tell = (/** @type {string} */ words) => {
    said.textContent = words;
    setTimeout(() => said.replaceChildren(), TOLD_FOR);
  };
  copy.onclick = async () => tell(SAID[await putOnClipboard(() => pngOf(pictureOf(view)))]);
  save.onclick = () => saveAs(svgBlob(pictureOf(view)), "attention.svg");
  return {
    node,
    draw() {
      const told = view.now.head !== null && view.now.pair !== null;
      copy.disabled = save.disabled = !told;
    },
  };
}

/** What is on the screen, as one drawing. @param {Pick<View, "root" | "now" | "colours">} view */
function pictureOf(view) {
  const {root} = view;
  const style = getComputedStyle(root);
  const claim = root.querySelector(".av-claim");
  const note = [...root.querySelectorAll(".av-claim-line > .av-aside, .av-claim-line > .av-where")]
    .map((part) => part.textContent)
    .filter(Boolean)
    .join(" \u00b7 ");
  const line = root.querySelector(".av-line");
  const rightToLeft = line !== null && getComputedStyle(line).direction === "rtl";
  const how = {rightToLeft, sans: style.fontFamily, mono: style.getPropertyValue("--av-mono").trim() || "monospace"};
  return drawCopy(view, claim ? headlineWords(claim, style.color) : [], note, how);
}

/** The headline's words, each with its colours: a word may have two. @param {Element} claim @param {string} usual */
function headlineWords(claim, usual) {
  /** @type {Run[][]} */
  const words = [[]];
  const walker = document.createTreeWalker(claim, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const {parentElement, textContent} = walker.currentNode;
    const colour = parentElement && parentElement !== claim ? getComputedStyle(parentElement).color : usual;
    for (const piece of (textContent ?? "").split(/(?<=\s)/u)) {
      words[words.length - 1].push({text: piece, colour});
      if (/\s$/u.test(piece)) words.push([]);
    }
  }
  return words.filter((word) => word.length > 0);
}

/** @param {SVGElement} picture */
function svgBlob(picture) {
  return new Blob([new XMLSerializer().serializeToString(picture)], {type: "image/svg+xml"});
}

/** @param {SVGElement} picture @returns {Promise<Blob>} */
async function pngOf(picture) {
  const address = URL.createObjectURL(svgBlob(picture));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [SHARPNESS * image.width, SHARPNESS * image.height];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Put a picture on the clipboard; without one that takes pictures, as on a page without https, save it.
 * @param {() => Promise<Blob>} make @returns {Promise<keyof typeof SAID>} */
async function putOnClipboard(make) {
  const picture = make();
  try {
    await picture;
  } catch {
    return "failed";
  }
  try {
    await navigator.clipboard.write([new ClipboardItem({"image/png": picture})]);
    return "copied";
  } catch {
    saveAs(await picture, "attention.png");
    return "saved";
  }
}
