// Where keys lead, and which of a group has the keyboard's focus.

/** @type {Record<string, [down: number, across: number]>} */
const ARROWS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

/** Which way an arrow key leads; null for any other key. @param {string} key */
export function arrowStep(key) {
  return Object.hasOwn(ARROWS, key) ? ARROWS[key] : null;
}

/** Where a key leads along a line, maybe past its ends; null for a key that leads nowhere.
 * @param {string} key @param {number} at @param {number} count */
export function placeByKey(key, at, count) {
  const places = new Map([
    ["Home", 0],
    ["End", count - 1],
    ["ArrowLeft", at - 1],
    ["ArrowRight", at + 1],
  ]);
  return places.get(key) ?? null;
}

/** Give one of a group the focus, and have the Tab key stop at it alone.
 * @param {Iterable<HTMLElement | SVGElement>} group @param {HTMLElement | SVGElement | undefined} next */
export function focusOne(group, next) {
  for (const node of group) node.setAttribute("tabindex", node === next ? "0" : "-1");
  next?.focus();
}
