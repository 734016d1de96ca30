// A card for each role below the atlas: legend, threshold, how many heads have it, and the best of them at once.

import {cellName} from "../heads/cells.js";
import {element, fitCanvas} from "../parts/element.js";
import {drawPattern, foldsCards, placeWords} from "./grid.js";
import {hueOf, roleOf, swatchOf} from "./roles.js";
import {weightText} from "../data/scale.js";

/** @import {Atlas, AtlasCell, Drawing} from "./grid.js"
 * @import {Role} from "./roles.js" */

/** The cards: `draw` shows them for a drawing, or hides them.
 * @typedef {{node: HTMLElement, draw: (drawing: Drawing) => void}} Cards */

const BEST = 5;
const SIZE = 36;

/** @param {Atlas} atlas @param {(cell: AtlasCell) => void} choose @returns {Cards} */
export function createCards(atlas, choose) {
  const node = element("div", {class: "av-roles", role: "group", "aria-label": "Roles of heads"});
  let made = "";
  /** @type {unknown} */
  let of = null;
  return {
    node,
    draw: (drawing) => {
      const {header, message} = drawing;
      node.hidden = message.view !== "roles";
      if (node.hidden) return;
      const theme = atlas.root.dataset["theme"] ?? "";
      if (of !== header || made !== theme) {
        const vacancies = header.roles.filter(({none}) => none).map((role) => vacant(atlas, drawing, role));
        const cards = header.roles.filter(({none}) => !none).map((role) => card(atlas, drawing, role, choose));
        node.replaceChildren(...cards, element("div", {class: "av-vacancies"}, ...vacancies));
        [of, made] = [header, theme];
      }
      node.classList.toggle("av-folded", foldsCards(header.layers));
      markCards(atlas, node, message.role);
    },
  };
}

/** @param {Atlas} atlas @param {HTMLElement} node @param {string | null} role */
function markCards({chosen}, node, role) {
  for (const name of node.querySelectorAll(".av-role-name")) {
    name.setAttribute("aria-pressed", String(name.getAttribute("data-role") === role));
  }
  for (const best of node.querySelectorAll(".av-best")) {
    const at = chosen !== null && best.getAttribute("data-place") === cellName(chosen);
    best.setAttribute("aria-current", String(at));
  }
}

/** @param {Atlas} atlas @param {Drawing} drawing @param {Role} role @param {(cell: AtlasCell) => void} choose */
function card(atlas, drawing, role, choose) {
  const {header} = drawing;
  const score = (/** @type {AtlasCell} */ cell) => header.score[cell.place] ?? -1;
  const heads = [...atlas.grid.cells.values()].filter((cell) => roleOf(header, cell) === role);
  const best = heads.sort((one, other) => score(other) - score(one)).slice(0, BEST);
  const name = nameOf(atlas, drawing, role, heads.length);
  const list = element("div", {class: "av-bests"}, ...best.map((cell) => button(drawing, role, cell, choose)));
  return element("section", {class: "av-role"}, name, element("p", {class: "av-asks"}, role.asks), list);
}

/** A role that no head has, in one line with the reason. @param {Atlas} atlas @param {Drawing} drawing @param {Role} role */
function vacant(atlas, drawing, role) {
  const none = element("p", {class: "av-none", title: `${role.asks}. ${role.none}`}, role.none);
  return element("section", {class: "av-role av-vacant"}, nameOf(atlas, drawing, role, 0), none);
}

/** A role's name with its sign and how many heads have it: pressed, these stand out.
 * @param {Atlas} atlas @param {Drawing} drawing @param {Role} role @param {number} count */
function nameOf(atlas, {colours}, role, count) {
  return element(
    "button",
    {
      ...{type: "button", class: "av-role-name", "data-role": role.name, title: role.meaning, "aria-pressed": "false"},
      onclick: () => pick(atlas, role),
    },
    swatchOf(role, colours),
    element("b", {}, role.label),
    element("span", {class: "av-count"}, String(count)),
  );
}

/** Have a role's heads stand out, or all again. @param {Atlas} atlas @param {Role} role */
function pick(atlas, {name}) {
  if (!atlas.drawing) return;
  atlas.setTriggerValue("role", atlas.drawing.message.role === name ? "" : name);
}

/** One of the best heads of a role: its pattern in the role's colour, which head it is, and its share.
 * @param {Drawing} drawing @param {Role} role @param {AtlasCell} cell @param {(cell: AtlasCell) => void} choose */
function button(drawing, role, cell, choose) {
  const {header, colours} = drawing;
  const canvas = element("canvas", {"aria-hidden": "true"});
  const context = fitCanvas(canvas, SIZE, SIZE);
  const hue = role.job ? hueOf(role, colours) : colours.ink;
  // Weights with a sign keep the colours of plus and minus.
  const tinted = {...drawing, colours: {...colours, ramp: [colours.background, hue]}};
  context.putImageData(drawPattern(tinted, cell, canvas.width, canvas.height), 0, 0);
  const score = header.score[cell.place];
  const {layer, head} = cell;
  const share = score === null ? "" : weightText(score);
  const told = `${placeWords(cell)}${score === null ? "" : `: ${weightText(score)}`}`;
  return element(
    "button",
    {
      ...{type: "button", class: "av-best", "data-place": cellName(cell), "aria-label": told},
      onclick: () => choose(cell),
    },
    canvas,
    element("span", {}, cell.of.channels ? String(layer) : `${layer}·${head}`),
    element("i", {}, share),
  );
}
