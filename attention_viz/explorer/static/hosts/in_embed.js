// The explorer as one script in somebody's page: in a shadow root behind its own <script>, with the colours of the text
// around it, so that neither page's style changes the other.

import {mountExplorer} from "../explorer.js";

/** @typedef {{script: HTMLOrSVGScriptElement | null, payload: string, style: string, title: string, theme: string}} Embedded */

/** @param {Embedded} embedded */
export function embedExplorer({script, payload, style, title, theme}) {
  if (!script) throw new Error("this script must be loaded by a <script> element that isn't a module");
  const place = document.createElement("div");
  // The page's style sheets may say anything of a <div>.
  for (const [name, value] of [
    ["all", "initial"],
    ["display", "block"],
  ])
    place.style.setProperty(name, value, "important");
  const root = place.attachShadow({mode: "open"});
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  root.adoptedStyleSheets = [sheet];
  const section = document.createElement("section");
  section.setAttribute("aria-label", title);
  root.append(section);
  const show = () => {
    if (script.closest("head")) document.body.append(place);
    else script.after(place);
    start(place, section, payload, theme);
  };
  if (document.body) show();
  else document.addEventListener("DOMContentLoaded", show, {once: true});
}

/** @param {HTMLElement} place @param {HTMLElement} section @param {string} payload @param {string} theme */
function start(place, section, payload, theme) {
  const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
  const explorer = mountExplorer(section, bytes, {
    theme: () => ((theme === "auto" ? themeAround(place) : theme) === "dark" ? "dark" : "light"),
  });
  // Keys that are walked with here are no shortcuts of the page around.
  section.addEventListener("keydown", (event) => event.stopPropagation());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", explorer.refresh);
  const observer = new MutationObserver(explorer.refresh);
  for (const node of [document.documentElement, document.body])
    observer.observe(node, {attributes: true, attributeFilter: ["class", "style", "data-theme"]});
}

/** Light letters around it mean a dark page. @param {HTMLElement} place */
function themeAround(place) {
  const canvas = document.createElement("canvas");
  const probe = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", {willReadFrequently: true}));
  probe.fillStyle = getComputedStyle(place.parentElement ?? document.body).color;
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? "light" : "dark";
}
