// Opening the drawer of a step's matrix: at once, in words, until the page has filled it, and closing it before that.

import {openChannel} from "../hosts/hosting.js";
import {element} from "../parts/element.js";

/** @import {Pipeline} from "./pipeline.js" */

// How wide the drawer is where there is room, and how far from its column.
const [DRAWER_WIDTH, DRAWER_GAP] = [640, 10];
// What the page calls the view without an open step.
const NO_STEP = "pipeline";

/** Press a column's table button: the drawer's place opens now, its numbers come with the page's answer.
 * @param {Pipeline} pipeline @param {HTMLElement | SVGElement} opener */
export function openDrawer(pipeline, opener) {
  const step = opener.dataset["open"] ?? "";
  const channel = openChannel();
  pipeline.setTriggerValue("open", step);
  channel.pressed = step;
  delete channel.dismissed;
  if (channel.drawer === step) return;
  placeDrawer(pipeline, step);
  const label = opener.getAttribute("aria-label")?.split(":")[0] ?? "";
  const close = element("button", {type: "button", class: "av-how"}, "Close");
  close.onclick = () => dismissDrawer(pipeline);
  const words = element("p", {}, "Reading the matrix from the run\u2026");
  pipeline.waiting.replaceChildren(element("header", {}, element("h3", {}, label), close), words);
  pipeline.waiting.hidden = false;
}

/** Close the drawer before the page has filled it: at once, and for good. @param {Pipeline} pipeline */
function dismissDrawer(pipeline) {
  const channel = openChannel();
  channel.dismissed = channel.pressed;
  pipeline.setTriggerValue("open", NO_STEP);
  document.documentElement.style.setProperty("--av-drawer", "none");
  channel.drawer = null;
  hearDrawer(pipeline);
}

/** Escape closes a drawer that the page hasn't filled; what is pressed next may open it again.
 * @param {Pipeline} pipeline */
export function attendOpening(pipeline) {
  const {signal} = pipeline;
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || pipeline.waiting.hidden) return;
      event.preventDefault();
      dismissDrawer(pipeline);
    },
    {signal, capture: true},
  );
  document.addEventListener("click", () => void delete openChannel().dismissed, {signal, capture: true});
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

/** Beside its step's column, and within the page. @param {Pipeline} pipeline @param {string} step */
function placeDrawer({root, stage, places}, step) {
  const opener = stage.querySelector(`[data-open="${CSS.escape(step)}"]`);
  if (!places || !opener?.getBoundingClientRect().width) return;
  const column = opener.getBoundingClientRect().left - root.getBoundingClientRect().left;
  const {left, width} = placeBeside(column, places);
  const {style} = document.documentElement;
  style.setProperty("--av-drawer-left", `${Math.round(left)}px`);
  style.setProperty("--av-drawer-width", `${Math.round(width)}px`);
}

/** Where the drawer stands: right of the column that has this place, or left of it, so that both are seen.
 * @param {number} x @param {import("./geometry.js").Places} places */
export function placeBeside(x, {narrow, width, entering, factors, sum, row, values, joined, rest}) {
  const columns = [entering, factors, sum, row, values, joined, rest].map((column) => column.x);
  const next = columns.findIndex((start) => start > x);
  const [own, right] = [columns[next - 1] ?? 0, columns[next] ?? width];
  if (narrow) return {left: 0, width};
  if (right + DRAWER_WIDTH <= width) return {left: right, width: DRAWER_WIDTH};
  const room = own - DRAWER_GAP;
  return {left: Math.max(0, room - DRAWER_WIDTH), width: Math.min(DRAWER_WIDTH, room)};
}
