// What moves when another pair is chosen: the row turns into shares, blocked keys leave it, and the values by their
// weights slide into their sum. Nothing moves on arrival, and nothing if the system asks for less motion.

import {tagOf} from "./row.js";

/** @import {Places} from "./geometry.js"
 * @import {Pair} from "./numbers.js"
 * @import {Scene} from "./scene.js" */

// How long all of it takes, in milliseconds.
const MOVING = 180;

/** @param {Scene} scene @param {Pair} pair @param {Places} places */
export function move(scene, {lanes}, {values, lane}) {
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const output = values.top + lane * lanes.length + 72;
  for (const [at, one] of lanes.entries()) {
    const tag = tagOf(one);
    const entry = markOf(scene, `entry-${tag}`, "rect.av-middling, rect.av-k, rect.av-hatched");
    const weight = markOf(scene, `weight-${tag}`, "rect.av-share");
    if (entry?.matches(".av-hatched")) leaveRow(entry);
    else if (entry && weight) becomeShare(entry, weight);
    const taken = one.share > 0.01 ? markOf(scene, `value-${tag}`, "g") : null;
    if (taken) slide(taken, output - values.top - (at + 0.5) * lane);
  }
  for (const [node, tags] of scene.marks)
    if (tags.some((tag) => tag.startsWith("output-")) && node.matches("rect")) grow(node);
}

/** @param {Scene} scene @param {string} tag @param {string} kind */
export function markOf({marks}, tag, kind) {
  return marks.find(([node, tags]) => tags.includes(tag) && node.matches(kind))?.[0] ?? null;
}

/** A weight's bar, from where the number that enters the softmax has its own.
 * @param {SVGElement} entry @param {SVGElement} weight */
function becomeShare(entry, weight) {
  const [from, to] = [entry, weight].map((node) => [
    Number(node.getAttribute("x")),
    Number(node.getAttribute("width")),
  ]);
  weight.style.transformBox = "fill-box";
  const start = `translateX(${from[0] - to[0]}px) scaleX(${from[1] / Math.max(0.6, to[1])})`;
  weight.animate([{transform: start, opacity: 0.5}, {transform: "none"}], timing());
}

/** @param {SVGElement} entry */
function leaveRow(entry) {
  const gone = /** @type {SVGElement} */ (entry.cloneNode());
  gone.setAttribute("class", "av-solid av-less av-part");
  entry.after(gone);
  const leaving = gone.animate([{opacity: 0.6}, {transform: "translateX(24px)", opacity: 0}], timing());
  leaving.onfinish = () => gone.remove();
}

/** @param {SVGElement} taken @param {number} down */
function slide(taken, down) {
  const copy = /** @type {SVGElement} */ (taken.cloneNode(true));
  taken.after(copy);
  const sliding = copy.animate([{opacity: 0.7}, {transform: `translateY(${down}px)`, opacity: 0}], timing());
  sliding.onfinish = () => copy.remove();
}

/** @param {SVGElement} part */
function grow(part) {
  part.animate([{opacity: 0}, {opacity: 1}], timing());
}

function timing() {
  return {duration: MOVING, easing: "ease-out"};
}
