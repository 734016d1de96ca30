// Opening the drawer of a step's matrix: at once, in words, until the page has filled it.

import {openChannel} from "../hosts/hosting.js";
import {element} from "../parts/element.js";

/** @import {Pipeline} from "./pipeline.js" */

/** The drawer's width; the same number is in page.css. */
const DRAWER_WIDTH = 640;

/** Press a column's table button: the drawer's place opens now, its numbers come with the page's answer.
 * @param {Pipeline} pipeline @param {HTMLElement | SVGElement} opener */
export function openDrawer(pipeline, opener) {
  const step = opener.dataset["open"] ?? "";
  const channel = openChannel();
  pipeline.setTriggerValue("open", step);
  channel.pressed = step;
  if (channel.drawer === step) return;
  placeDrawer(pipeline, step);
  const label = opener.getAttribute("aria-label")?.split(":")[0] ?? "";
  const lines = [element("h3", {}, label), element("p", {}, "Reading the matrix from the run\u2026")];
  pipeline.waiting.replaceChildren(...lines);
  pipeline.waiting.hidden = false;
}

/** The page has filled the drawer, or closed it. @param {Pipeline} pipeline */
export function hearDrawer(pipeline) {
  const channel = openChannel();
  pipeline.waiting.hidden = true;
  for (const node of pipeline.stage.querySelectorAll("[data-open]"))
    node.setAttribute("aria-expanded", String(node.getAttribute("data-open") === channel.drawer));
  if (channel.drawer) {
    placeDrawer(pipeline, channel.drawer);
    return;
  }
  const opener = channel.pressed ? pipeline.stage.querySelector(`[data-open="${channel.pressed}"]`) : null;
  if (opener instanceof SVGElement) opener.focus({preventScroll: true});
  delete channel.pressed;
}

/** At its step's column, and within the page. @param {Pipeline} pipeline @param {string} step */
function placeDrawer({root, stage}, step) {
  const opener = stage.querySelector(`[data-open="${CSS.escape(step)}"]`);
  if (!opener?.getBoundingClientRect().width) return;
  const left = opener.getBoundingClientRect().left - root.getBoundingClientRect().left - 12;
  const most = Math.max(0, root.clientWidth - DRAWER_WIDTH);
  document.documentElement.style.setProperty("--av-drawer-left", `${Math.round(Math.min(left, most))}px`);
}
