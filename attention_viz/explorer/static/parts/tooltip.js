// One small label beside the pointer, for whatever is under it.

import {element} from "./element.js";

/** A label beside the pointer: `show` at a place of the window, and `hide`; `into` moves it into what has the screen to
 * itself, null back.
 * @typedef {{show: (x: number, y: number, ...children: Node[]) => void, hide: () => void,
 *   into: (place: HTMLElement | null) => void}} Tooltip */

const FROM_POINTER = 14;

/** A tooltip inside `root`, never outside the window. @param {HTMLElement} root @returns {Tooltip} */
export function createTooltip(root) {
  const node = element("div", {class: "av-tooltip", role: "tooltip", hidden: true});
  let around = root;
  root.append(node);
  return {
    show(x, y, ...children) {
      node.replaceChildren(...children);
      node.hidden = false;
      const [frame, size] = [around.getBoundingClientRect(), node.getBoundingClientRect()];
      const [width, height] = [document.documentElement.clientWidth, document.documentElement.clientHeight];
      const left = x + FROM_POINTER + size.width > width - 4 ? x - FROM_POINTER - size.width : x + FROM_POINTER;
      const top = y + FROM_POINTER + size.height > height - 4 ? y - FROM_POINTER - size.height : y + FROM_POINTER;
      node.style.left = `${Math.max(4, Math.min(left, width - size.width - 4)) - frame.left}px`;
      node.style.top = `${Math.max(4, top) - frame.top}px`;
    },
    hide() {
      node.hidden = true;
    },
    into(place) {
      around = place ?? root;
      around.append(node);
    },
  };
}
