// A number that travels from the page that shows it to its place in Step by step. Nothing moves if the system asks for
// less motion, and nothing stays if the place isn't drawn in time.

import {element} from "../parts/element.js";
import {openChannel} from "./hosting.js";

/** A weight on its way: its pair, and what floats where it was.
 * @typedef {{text: string, query: number, key: number, chip: HTMLElement, timer: number}} Travelling */

/** @typedef {Pick<Travelling, "text" | "query" | "key">} Weighed */

// How long the way takes, and how long a number waits for its place, in milliseconds.
const [TRAVEL, WAIT] = [180, 2000];
// Of a smaller cell it is as high as it has to be, in pixels.
const LEAST_HEIGHT = 16;

/** Lift a number off its place, as the page below it goes. @param {Element} node @param {Weighed} weighed */
export function liftNumber(node, {text, query, key}) {
  dropNumber();
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const {left, top, width, height} = node.getBoundingClientRect();
  const style = getComputedStyle(node);
  const chip = element("div", {"aria-hidden": "true", "data-testid": "travelling-number"}, text);
  Object.assign(chip.style, {
    ...{position: "fixed", zIndex: "1000000", pointerEvents: "none", transform: "translate(-50%, -50%)"},
    ...{left: `${left + width / 2}px`, top: `${top + height / 2}px`, minWidth: `${width}px`},
    lineHeight: `${Math.max(LEAST_HEIGHT, height)}px`,
    ...{padding: "0 3px", boxSizing: "border-box", textAlign: "center", borderRadius: "3px", whiteSpace: "nowrap"},
    ...{fontFamily: style.fontFamily, fontSize: style.fontSize, fontWeight: style.fontWeight},
    color: style.getPropertyValue("--av-background"),
    background: style.getPropertyValue("--av-accent"),
  });
  document.body.append(chip);
  openChannel().travelling = {text, query, key, chip, timer: window.setTimeout(dropNumber, WAIT)};
}

/** Let the number that is on its way come to its place, if it is the one that is shown there.
 * @param {Element | null} node @param {Weighed} weighed */
export function landNumber(node, weighed) {
  const {travelling} = openChannel();
  if (!travelling) return;
  const {chip, text, query, key} = travelling;
  if (!node || text !== weighed.text || query !== weighed.query || key !== weighed.key) {
    dropNumber();
    return;
  }
  const [from, to] = [middleOfBox(chip), middleOfBox(node)];
  const size = parseFloat(getComputedStyle(node).fontSize) / parseFloat(chip.style.fontSize);
  const end = `translate(-50%, -50%) translate(${to.x - from.x}px, ${to.y - from.y}px) scale(${size})`;
  const timing = {duration: TRAVEL, easing: "ease-out"};
  node.animate([{opacity: 0}, {opacity: 0}], timing);
  chip.animate([{transform: chip.style.transform}, {transform: end}], timing).onfinish = dropNumber;
}

function dropNumber() {
  const channel = openChannel();
  clearTimeout(channel.travelling?.timer);
  channel.travelling?.chip.remove();
  delete channel.travelling;
}

/** @param {Element} node */
function middleOfBox(node) {
  const {left, top, width, height} = node.getBoundingClientRect();
  return {x: left + width / 2, y: top + height / 2};
}

/** Whether all of a place is on the screen. @param {Element | null} node */
export function isInSight(node) {
  if (!node) return false;
  const {left, top, right, bottom, width} = node.getBoundingClientRect();
  return width > 0 && left >= 0 && top >= 0 && right <= window.innerWidth && bottom <= window.innerHeight;
}
