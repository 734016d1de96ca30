// The life of a component in a Streamlit page: made once for an element, drawn at each run of the page, ended once the
// element has left it. The reader's choices go to the page with a serial number, so that an older answer never moves one.

import {latestFor, listenToChannel, openChannel, sameBytes, themeOf} from "./hosting.js";

/** @import {Message, Mounting} from "./hosting.js" */

/** What every component has.
 * @typedef {object} Mounted
 * @property {HTMLElement} root
 * @property {HTMLElement} parentElement
 * @property {any} data  what it shows: bytes, or an object that the page sent as JSON
 * @property {number} serial  of the reader's last choice
 * @property {AbortSignal} signal  aborts once the element has left the page
 * @property {Mounting["setStateValue"]} setStateValue
 * @property {Mounting["setTriggerValue"]} setTriggerValue */

/** What one kind of component does: `load` takes other data, `draw` the same data again, `hear` the page's messages.
 * Data are the same if their bytes are, unless `same` compares them.
 * @template {Mounted} C
 * @typedef {{selector: string, create: (base: Mounted) => C, load: (component: C, data: any) => unknown,
 *   draw?: (component: C) => unknown, hear?: (component: C, message: Message) => unknown,
 *   same?: (before: any, data: any) => boolean, leave?: (component: C) => void}} Life */

/** @typedef {{component: any, ends: AbortController, leaving: number}} Entry */

// How soon after it was let go an element is looked at, and how often from then on while it is still on the page. On a
// busy machine the component may be called for it again after a while: one built anew would lose the focus.
const [LEAVING, STAYING] = [50, 1000];
/** @type {WeakMap<HTMLElement, Entry>} */
const mounted = new WeakMap();

/** Show a component in its element, new or again.
 * @template {Mounted} C @param {Mounting} mounting @param {Life<C>} life @returns {() => void} */
export function mountComponent({data, parentElement, setStateValue, setTriggerValue}, life) {
  const taken = /** @type {any} */ (data) ?? new Uint8Array(0);
  const entry = mounted.get(parentElement) ?? begin(parentElement, {setStateValue, setTriggerValue}, life);
  const component = /** @type {C} */ (entry.component);
  clearTimeout(entry.leaving);
  Object.assign(component, {setStateValue, setTriggerValue});
  component.root.dataset["theme"] = themeOf(component.root);
  if (component.data && (life.same ?? sameBytes)(component.data, taken)) life.draw?.(component);
  else {
    component.data = taken;
    life.load(component, taken);
  }
  return () => end(parentElement, entry, life, LEAVING);
}

/** @template {Mounted} C @param {HTMLElement} parentElement
 * @param {Pick<Mounting, "setStateValue" | "setTriggerValue">} ways @param {Life<C>} life */
function begin(parentElement, ways, {selector, create, hear}) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(selector));
  const ends = new AbortController();
  const component = create({root, parentElement, data: null, serial: 0, signal: ends.signal, ...ways});
  if (hear) listenToChannel(parentElement, (message) => hear(component, message), ends.signal);
  /** @type {Entry} */
  const entry = {component, ends, leaving: 0};
  mounted.set(parentElement, entry);
  return entry;
}

/** @template {Mounted} C @param {HTMLElement} parentElement @param {Entry} entry @param {Life<C>} life
 * @param {number} wait */
function end(parentElement, entry, life, wait) {
  clearTimeout(entry.leaving);
  entry.leaving = window.setTimeout(() => {
    if (parentElement.isConnected) {
      end(parentElement, entry, life, STAYING);
      return;
    }
    life.leave?.(entry.component);
    entry.ends.abort();
    mounted.delete(parentElement);
  }, wait);
}

/** Hear the last message that came before now. @template {Mounted} C @param {C} component
 * @param {(component: C, message: Message) => unknown} hear */
export function hearLatest(component, hear, about = "") {
  const message = latestFor(component.parentElement, about);
  if (message) hear(component, message);
}

/** Whether the page's choice counts: not where the reader has made one since that the page hasn't heard of.
 * @param {Mounted} component @param {Message} message */
export function takesChoice(component, {seen = 0}) {
  if (seen < component.serial) return false;
  component.serial = seen;
  return true;
}

/** Number the reader's next choice. A component that is built anew goes on from the one before it: an answer to that is
 * older than what the reader chooses in this one.
 * @param {Pick<Mounted, "serial">} component */
export function countChoice(component) {
  const channel = openChannel();
  component.serial = channel.serial = Math.max(channel.serial, component.serial) + 1;
}

/** Tell the page what the reader chose. @param {Mounted} component @param {Record<string, unknown>} choice */
export function sendChoice(component, choice) {
  countChoice(component);
  component.setStateValue("choice", {...choice, serial: component.serial});
}

/** Draw at each change of a component's size, until it has left. @param {Mounted} component @param {() => void} draw */
export function watchSize({root, signal}, draw) {
  const observer = new ResizeObserver(draw);
  observer.observe(root);
  window.addEventListener("resize", draw, {signal});
  signal.addEventListener("abort", () => observer.disconnect());
}
