// The lesson's one setting, and the words that can ask: as a slider, a list or buttons of the browser's own.

import {element} from "../parts/element.js";

/** @import {Choice} from "./data.js" */

/** What is chosen from. @typedef {{name: string, label: string, options: Choice[], value: string, ordered?: boolean,
 *   buttons?: boolean}} Choosing */

/** @param {Choosing} choosing @param {(value: string) => void} take */
export function makeChoice(choosing, take) {
  if (choosing.ordered) return makeOrdered(choosing, take);
  return choosing.buttons ? makeButtons(choosing, take) : makeList(choosing, take);
}

/** @param {Choosing} choosing @param {(value: string) => void} take */
function makeOrdered({name, label, options, value}, take) {
  const at = Math.max(
    0,
    options.findIndex(([one]) => one === value),
  );
  const shown = element("output", {for: `choose-${name}`}, options[at]?.[1]);
  const range = {type: "range", min: 0, max: options.length - 1, step: 1, id: `choose-${name}`};
  const slider = element("input", {...range, value: at, "aria-valuetext": options[at]?.[1]});
  slider.oninput = () => {
    const [chosen, words] = options[Number(slider.value)] ?? ["", ""];
    shown.textContent = words;
    slider.setAttribute("aria-valuetext", words);
    take(chosen);
  };
  return element("div", {class: "course-choice"}, element("label", {for: slider.id}, label), slider, shown);
}

/** @param {Choosing} choosing @param {(value: string) => void} take */
function makeList({name, label, options, value}, take) {
  const list = element("select", {id: `choose-${name}`});
  for (const [one, words] of options) list.append(element("option", {value: one, selected: one === value}, words));
  list.onchange = () => take(list.value);
  return element("div", {class: "course-choice"}, element("label", {for: list.id}, label), list);
}

/** @param {Choosing} choosing @param {(value: string) => void} take */
function makeButtons({name, label, options, value}, take) {
  const buttons = options.map(([one, words]) => {
    const radio = element("input", {type: "radio", name: `choose-${name}`, value: one, checked: one === value});
    radio.onchange = () => take(one);
    return element("label", {}, radio, element("span", {}, words));
  });
  return element("fieldset", {class: "course-pills"}, element("legend", {}, label), ...buttons);
}

/** Bring a choice to what is chosen now, without taking the focus. @param {HTMLElement} choice @param {Choosing} choosing */
export function setChoice(choice, {options, value}) {
  const at = options.findIndex(([one]) => one === value);
  for (const control of /** @type {NodeListOf<HTMLInputElement | HTMLSelectElement>} */ (
    choice.querySelectorAll("input, select")
  )) {
    if (control instanceof HTMLInputElement && control.type === "radio") control.checked = control.value === value;
    else control.value = control instanceof HTMLInputElement ? String(Math.max(0, at)) : value;
  }
  const shown = choice.querySelector("output");
  if (shown) shown.textContent = options[at]?.[1] ?? "";
}
