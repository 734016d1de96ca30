// What all of our widgets share in a notebook: a place with styles of their own, keys that stay inside, the theme around.

import {element} from "../parts/element.js";
import {isDarkColour} from "./hosting.js";

/** @import {Model} from "./loading.js" */

const KEYS = ["keydown", "keypress", "keyup"];

/** A place inside a widget's element that the page's styles don't reach. Keys that were pressed in it mean nothing to
 * the notebook around it.
 * @param {HTMLElement} el @param {string} style */
export function openPlace(el, style) {
  const host = element("div", {});
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  const shadow = host.attachShadow({mode: "open"});
  shadow.adoptedStyleSheets = [sheet];
  const place = element("div", {});
  shadow.append(place);
  el.replaceChildren(host);
  for (const name of KEYS) host.addEventListener(name, (event) => event.stopPropagation());
  el.dataset["lmSuppressShortcuts"] = "true";
  return place;
}

/** Wait until a place is on the page and has a width; hosts show a widget before they place it.
 * @param {HTMLElement} place @param {AbortSignal} signal */
export async function placedOnPage(place, signal) {
  while (!signal.aborted && !(place.isConnected && place.clientWidth > 0))
    await new Promise((resolve) => requestAnimationFrame(resolve));
}

/** The theme that Python asked for, else that of the notebook: light letters are those of a dark one.
 * @param {Model} model @param {HTMLElement} el @returns {"light" | "dark"} */
export function themeAround(model, el) {
  const asked = model.get("_theme");
  if (asked === "light" || asked === "dark") return asked;
  return isDarkColour(getComputedStyle(el).color) ? "light" : "dark";
}

/** Hear when the theme around may have changed, until `signal` aborts. The style sheets of a theme may come after the
 * page says that it has another one.
 * @param {() => void} hear @param {AbortSignal} signal */
export function watchTheme(hear, signal) {
  const observer = new MutationObserver(hear);
  for (const watched of [document.documentElement, document.body]) observer.observe(watched, {attributes: true});
  observer.observe(document.head, {childList: true});
  document.addEventListener("load", hear, {capture: true, signal});
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", hear, {signal});
  signal.addEventListener("abort", () => observer.disconnect());
}

/** Hear of a model until `signal` aborts.
 * @param {Model} model @param {string} name @param {(...values: any[]) => void} hear @param {AbortSignal} signal */
export function hearModel(model, name, hear, signal) {
  model.on(name, hear);
  signal.addEventListener("abort", () => model.off(name, hear));
}
