// The button that ablates the chosen head, and what becomes of the output, in words first. A press is answered at once:
// the atlas strikes the head out, the page greys its matrix, and words wait for the model's numbers.

import {announceSilence, hearHeads} from "./silence.js";
import {hearLatest, mountComponent, sendChoice, takesChoice} from "../hosts/component.js";
import {element} from "../parts/element.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Message, Mounting} from "../hosts/hosting.js" */

/** A label, its number before and after, and both as they are written.
 * @typedef {[label: string, old: number, now: number, oldText: string, nowText: string]} EffectRow */

/** The head that the page shows, and whether it is ablated; `heard` is the atlas's last choice that the page knows.
 * @typedef {{of: string, name: string, buttons: [ablate: string, restore: string], rows: number, silent: boolean,
 *   seen: number, heard: number}} ShownHead */

/** What the model's runs say of a head.
 * @typedef {Message & {of: string, silent: boolean, was: string, sentence: string, title: string, note: string,
 *   rows: EffectRow[], changed: (number | null)[] | null}} EffectMessage */

/** `silent` and `of` are ahead of the page, from a press on.
 * @typedef {Mounted & EffectParts & {shown: ShownHead | null, silent: boolean, of: string, name: string, heard: number,
 *   result: EffectMessage | null}} Effect
 * @typedef {{button: HTMLButtonElement, hint: HTMLElement, words: HTMLElement, bars: HTMLTableElement,
 *   note: HTMLElement}} EffectParts */

/** @param {Mounting} mounting */
export default function effectComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-effect",
    create: createEffect,
    load(effect, shown) {
      takeShown(effect, shown);
      hearLatest(effect, takeEffect, "effect");
      drawEffect(effect);
    },
    draw: drawEffect,
    hear(effect, message) {
      takeEffect(effect, message);
      drawEffect(effect);
    },
    same: (before, data) => JSON.stringify(before) === JSON.stringify(data),
    leave: () => announceSilence(null),
  });
}

/** @param {Mounted} base @returns {Effect} */
function createEffect(base) {
  const press = () => {
    effect.silent = !effect.silent;
    sendChoice(effect, {silent: effect.silent});
    drawEffect(effect);
  };
  const button = element("button", {type: "button", onclick: press});
  const [hint, note] = [element("span", {class: "av-quiet"}), element("p", {class: "av-quiet"})];
  const words = element("p", {class: "av-effect-words", role: "status", dir: "auto"});
  const table = element("table", {class: "av-effect-bars"});
  /** @type {Effect} */
  const effect = {
    ...{...base, button, hint, words, bars: table, note},
    ...{shown: null, silent: false, of: "", name: "", heard: 0, result: null},
  };
  base.root.replaceChildren(element("div", {class: "av-effect-line"}, button, hint), words, table, note);
  hearHeads((head) => {
    Object.assign(effect, head);
    drawEffect(effect);
  }, base.signal);
  return effect;
}

/** @param {Effect} effect @param {ShownHead} shown */
function takeShown(effect, shown) {
  const {of, name, silent, seen, heard} = shown;
  effect.shown = shown;
  if (takesChoice(effect, /** @type {Message} */ (/** @type {unknown} */ ({seen})))) effect.silent = silent;
  if (heard >= effect.heard) Object.assign(effect, {of, name});
}

/** @param {Effect} effect @param {Message} message */
function takeEffect(effect, message) {
  if (message.about === "effect") effect.result = /** @type {EffectMessage} */ (message);
}

/** @param {Effect} effect */
function drawEffect(effect) {
  const {root, shown, silent, of, name, result, button} = effect;
  if (!shown || !root.isConnected) return;
  const told = result?.of === of ? result : null;
  const done = told !== null && (told.silent || !silent);
  const both = done && silent;
  root.classList.toggle("av-waiting", !done);
  button.className = silent ? "av-press" : "av-press av-main";
  button.textContent = shown.buttons[silent ? 1 : 0];
  effect.hint.textContent = silent ? `The output of ${name} is 0.` : "Sets its output to 0.";
  const waiting = silent ? `The model runs without ${name} \u2026` : "\u2026";
  write(effect.words, !done ? waiting : silent ? told.sentence : told.was);
  write(effect.note, both ? told.note : "");
  drawEffectBars(effect.bars, (done ? told : result) ?? {rows: [], title: ""}, both, shown.rows);
  greyMatrix(root, silent);
  announceSilence(silent ? {of, name, changed: both ? told.changed : null} : null);
}

/** Screen readers hear of a text that changes. @param {HTMLElement} node @param {string} text */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A line for each row, with its bar before and, once it is known, after; lines that are missing keep their room.
 * @param {HTMLTableElement} table @param {Pick<EffectMessage, "rows" | "title">} result @param {boolean} both
 * @param {number} room */
function drawEffectBars(table, {rows, title}, both, room) {
  // The same bars stay: drawn anew, they would grow again.
  const drawn = JSON.stringify([rows, title, both, room]);
  if (table.dataset["drawn"] === drawn) return;
  table.dataset["drawn"] = drawn;
  const most = Math.max(1e-9, ...rows.flatMap(([, old, now]) => [old, now]));
  const bar = (/** @type {string} */ kind, /** @type {number} */ number) => {
    const node = element("i", {class: kind});
    node.style.width = `${(100 * Math.max(0, number)) / most}%`;
    return node;
  };
  const lines = rows.map(([label, old, now, oldText, nowText]) =>
    element(
      "tr",
      {},
      element("th", {scope: "row"}, element("bdi", {}, label)),
      element("td", {}, bar("av-before", old), both ? bar("av-after", now) : null),
      element("td", {class: "av-number"}, both ? `${oldText} \u2192 ${nowText}` : oldText),
    ),
  );
  const swatch = (/** @type {string} */ kind, /** @type {string} */ word) =>
    element("span", {}, element("i", {class: kind}), word);
  const legend = both
    ? element("span", {class: "av-effect-key"}, swatch("av-before", "before"), swatch("av-after", "after"))
    : null;
  table.replaceChildren(element("caption", {}, title, legend), element("tbody", {}, ...lines));
  table.style.minHeight = `${room ? 21 + 21 * room : 0}px`;
  table.hidden = room === 0 || (rows.length === 0 && !both && title === "" && room < 4);
}

/** @param {HTMLElement} root @param {boolean} silent */
function greyMatrix(root, silent) {
  const tree = root.getRootNode();
  const host = tree instanceof ShadowRoot ? tree.host : root;
  host.closest(".st-key-heads-one-head")?.toggleAttribute("data-silent", silent);
}
