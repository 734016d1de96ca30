// What a component of ours needs of Streamlit's page: messages about what the page chose, and the page's theme.

import {readPayload} from "../data/payload.js";

/** @import {Silence} from "../atlas/silence.js"
 * @import {Travelling} from "./travel.js"
 * @import {Ranking} from "../data/recording.js"
 * @import {Outcome} from "../claim/matters.js" */

/** What the page shows now: sent through the channel, apart from the data. `explorer` is the key of the component that
 * is meant, `seen` the serial number of the last choice of the reader's that the page has heard of, `ranking` the
 * heads of a long text that link the pair of tokens that the page was asked for, `outcome` what becomes without a head. `about` names what a component is
 * told of, where there is more than one thing.
 * @typedef {{explorer: string, layer: number, head: number, query?: number | null, key?: number | null, arrived?: boolean, single?: boolean, seen?: number, stream?: string, ranking?: Ranking, outcome?: Outcome, about?: string}} Message */

/** Where the channel component leaves its messages: the latest for each component and subject, and an event for each
 * that comes. So does the packet component with the last head of each long text that was handed over, by the text's id,
 * and that of the rest of a layer with its bytes, by the layer's. `behind` is the place behind the chosen head, where a page has one, and `silence` the
 * head that is ablated. `drawer` is the step that the drawer over the pipeline shows, `pressed` the one whose button was
 * pressed, `dismissed` the one that the reader closed, which no earlier answer of the page shows again. `serial` numbers
 * the choices of all components, those that are gone too. `travelling` is a number on its way to its place in Step by
 * step.
 * @typedef {{latest: Map<string, Message>, target: EventTarget, packets: Map<string, Uint8Array>, rests: Map<string, Uint8Array>,
 *   drawer?: string | null, pressed?: string, dismissed?: string | undefined, behind: HTMLElement | null,
 *   silence: Silence | null, serial: number, travelling?: Travelling}} Channel */

/** What Streamlit hands to a component.
 * @typedef {{data: unknown, parentElement: HTMLElement, setStateValue: (name: string, value: unknown) => void,
 *   setTriggerValue: (name: string, value: unknown) => void}} Mounting */

/** Where the channel component leaves its messages (see channel.js). @returns {Channel} */
export function openChannel() {
  const place = Symbol.for("attention_viz.explorer");
  const page = /** @type {Record<symbol, Channel | undefined>} */ (/** @type {unknown} */ (globalThis));
  const fresh = {
    ...{latest: new Map(), target: new EventTarget(), packets: new Map(), rests: new Map()},
    ...{behind: null, silence: null, serial: 0},
  };
  const channel = page[place] ?? fresh;
  page[place] = channel;
  return channel;
}

// Of how many texts a page keeps the last head, and of how many layers the rest.
const MOST_HELD = 8;

/** Keep bytes by what they are of, the latest last. @param {Map<string, Uint8Array>} held @param {Uint8Array} bytes */
export function holdBytes(held, bytes) {
  /** @type {string} */
  const of = readPayload(bytes).header.of;
  held.delete(of);
  held.set(of, bytes);
  for (const oldest of [...held.keys()].slice(0, -MOST_HELD)) held.delete(oldest);
}

/** Whether a component is on a page without the app's other pages, so that nothing may lead to them.
 * @param {HTMLElement} root */
export function isEmbedded(root) {
  return root.dataset["embedded"] !== undefined;
}

/** Leave a message; what it returns takes it away again, unless another came. @param {Message} message */
export function leaveMessage(message) {
  const channel = openChannel();
  const name = subjectOf(message);
  channel.latest.set(name, message);
  channel.target.dispatchEvent(new CustomEvent("choice", {detail: message}));
  return () => {
    if (channel.latest.get(name) === message) channel.latest.delete(name);
  };
}

/** Hear the messages for the component at this element, until `signal` aborts.
 * @param {HTMLElement} parentElement @param {(message: Message) => void} hear @param {AbortSignal} signal */
export function listenToChannel(parentElement, hear, signal) {
  const take = (/** @type {Event} */ event) => {
    const message = /** @type {CustomEvent<Message>} */ (event).detail;
    if (isMeant(parentElement, message)) hear(message);
  };
  openChannel().target.addEventListener("choice", take, {signal});
}

/** The last message for the component at this element, if there was one.
 * @param {HTMLElement} parentElement @param {string} about */
export function latestFor(parentElement, about = "") {
  return [...openChannel().latest.values()].find(
    (message) => (message.about ?? "") === about && isMeant(parentElement, message),
  );
}

/** Whom a message is for, and of what it tells. @param {Message} message */
function subjectOf({explorer, about = ""}) {
  return `${explorer} ${about}`;
}

/** Whether a message is for this component. @param {HTMLElement} parentElement @param {Message} message */
function isMeant(parentElement, {explorer}) {
  return isInPart(parentElement, explorer);
}

/** Whether a component is in the part of a page with a key, which Streamlit writes into a class of an element.
 * @param {HTMLElement} parentElement @param {string} key */
export function isInPart(parentElement, key) {
  const root = parentElement.getRootNode();
  const host = root instanceof ShadowRoot ? root.host : parentElement;
  return host.closest(`.st-key-${CSS.escape(key.replace(/[^\w-]/g, "-"))}`) !== null;
}

/** Until a page of the app has its style sheet, which the browser fetches a script for: what is drawn before would be
 * as wide as a page without it, and be drawn anew in the reader's sight.
 * @returns {Promise<void>} */
export async function pageStyled() {
  const root = getComputedStyle(document.documentElement);
  while (document.querySelector(".st-key-page") && !root.getPropertyValue("--av-monospace"))
    await new Promise((resolve) => requestAnimationFrame(resolve));
}

/** A plain loop: several megabytes are compared whenever the page runs again.
 * @param {Uint8Array} one @param {Uint8Array} other */
export function sameBytes(one, other) {
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/** Whether the host's page is dark: by the lightness of its background.
 * @param {Element} host @returns {"light" | "dark"} */
export function themeOf(host) {
  const colour = getComputedStyle(host).getPropertyValue("--st-background-color").trim();
  return isDarkColour(colour || "#ffffff") ? "dark" : "light";
}

/** Whether a colour is closer to black than to white. @param {string} colour  as a style sheet has it */
export function isDarkColour(colour) {
  const canvas = document.createElement("canvas");
  const probe = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", {willReadFrequently: true}));
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}
