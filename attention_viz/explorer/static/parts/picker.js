// Picking a token: from a list, or in a long text by a word or a position.

import {element} from "./element.js";
import {findToken} from "../data/finding.js";

/** @import {Axis} from "../data/tokens.js" */

/** A picker of one token: `fill` with those there are, `show` the one that is chosen.
 * @typedef {{node: HTMLElement, fill: (axis: Axis) => void, show: (place: number | null) => void}} Picker */

// A list of more tokens than this is one that nobody looks through.
const LONGEST_LIST = 1000;

/** @param {string} role  its class
 * @param {string} label @param {(place: number) => void} choose @returns {Picker} */
export function createPicker(role, label, choose) {
  const list = element("select", {class: role, "aria-label": label});
  const box = element("input", {
    class: role,
    type: "search",
    size: 14,
    "aria-label": `${label}: a word or a position`,
    title: "A word or a position; Enter finds the next match",
  });
  const node = element("span", {class: "av-picker"}, list);
  /** @type {{axis: Axis | null, place: number | null, typing: boolean}} */
  const now = {axis: null, place: null, typing: false};
  list.onchange = () => choose(Number(list.value));
  box.oninput = () => (now.typing = true);
  box.onblur = () => {
    now.typing = false;
    show(now.place);
  };
  box.onkeydown = (event) => {
    if (event.key !== "Enter" || now.axis === null) return;
    event.preventDefault();
    const found = findToken(now.axis, box.value, now.place);
    box.setAttribute("aria-invalid", String(found === null));
    if (found === null) return;
    now.typing = false;
    choose(found);
    show(found);
  };
  const show = (/** @type {number | null} */ place) => {
    now.place = place;
    list.value = String(place);
    // What is drawn anew while somebody types leaves what is typed.
    if (place !== null && now.axis !== null && !now.typing) box.value = `${now.axis.spellings[place].text} ${place}`;
  };
  return {
    node,
    show,
    fill(axis) {
      now.axis = axis;
      const many = axis.count > LONGEST_LIST;
      node.replaceChildren(many ? box : list);
      list.replaceChildren(
        ...(many ? [] : axis.names).map((name, place) =>
          element("option", {value: place, dir: "auto", "aria-label": axis.spoken[place]}, name),
        ),
      );
    },
  };
}
