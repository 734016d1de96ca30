// The explorer as a Streamlit component. Called again for new data and for a change of theme, on the same element.

import {isMeant, latestFor, listenToChannel, openChannel, pageStyled, sameBytes, themeOf} from "./hosting.js";
import {mountExplorer} from "../explorer.js";

/**
 * @import {Message, Mounting} from "./hosting.js"
 * @import {Explorer, Settings} from "../explorer.js"
 * @import {HeadChoice} from "../data/recording.js"
 */

/**
 * An explorer on the page.
 * @typedef {object} Entry
 * @property {Uint8Array} bytes
 * @property {Mounting["setStateValue"]} setStateValue
 * @property {Mounting["setTriggerValue"]} setTriggerValue
 * @property {HTMLElement} parentElement
 * @property {number} serial  of the reader's last choice
 * @property {Explorer | null} explorer
 * @property {{choice?: HeadChoice, settings?: Settings | undefined}} before  what was on the screen before this data came
 * @property {(HeadChoice & {serial: number}) | null} pending  chosen by the reader, and not told to the server yet
 * @property {number} chosen  when
 * @property {number} timer
 * @property {number} leaving
 * @property {AbortController} listening
 */

const PAUSE = 100;
// Choices that follow each other sooner than this are steps of a walk.
const WALKING = 400;
const WAIT_FOR_CHOICE = 120;
// How soon after it was let go an element is looked at, and how often from then on while it is still on the page.
const [LEAVING, STAYING] = [50, 1000];
/** @type {WeakMap<HTMLElement, Entry>} */
const running = new WeakMap();
/** What was set beside the explorer that began last, also once it is gone. @type {() => Settings | undefined} */
let lastSettings = () => undefined;

/** @param {Mounting} mounting */
export default function explorerComponent({data, parentElement, setStateValue, setTriggerValue}) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(0);
  const before = running.get(parentElement);
  clearTimeout(before?.leaving);
  if (before && sameBytes(before.bytes, bytes)) {
    Object.assign(before, {setStateValue, setTriggerValue});
    before.explorer?.refresh();
    return () => cleanUp(parentElement, before);
  }
  /** @type {Entry} */
  const entry = {
    bytes,
    setStateValue,
    setTriggerValue,
    parentElement,
    serial: before?.serial ?? 0,
    explorer: null,
    before: {},
    pending: null,
    chosen: -Infinity,
    timer: 0,
    leaving: 0,
    listening: new AbortController(),
  };
  running.set(parentElement, entry);
  entry.before = left(before);
  start(parentElement, entry, before).catch((error) => showFailure(parentElement, error));
  return () => cleanUp(parentElement, entry);
}

/**
 * Show new data where the old was; the head and the settings stay.
 * @param {HTMLElement} parentElement
 * @param {Entry} entry
 * @param {Entry | undefined} before
 */
async function start(parentElement, entry, before) {
  const host = hostIn(parentElement);
  listen(host, entry);
  if (before) stop(before);
  else if (!latestFor(parentElement)) await new Promise((resolve) => setTimeout(resolve, WAIT_FOR_CHOICE));
  await pageStyled();
  if (running.get(parentElement) !== entry || entry.listening.signal.aborted) return;
  const message = latestFor(parentElement);
  if (message) entry.serial = Math.max(entry.serial, message.seen ?? 0);
  const explorer = mountExplorer(host, entry.bytes, {
    settings: entry.before.settings,
    choice: entry.before.choice ?? message,
    theme: () => themeOf(host),
    onChoice: (next) => {
      entry.serial += 1;
      // What has to come from the server is asked for at once, unless the reader is walking through the heads.
      const wait = entry.explorer?.holds(next) || performance.now() - entry.chosen < WALKING ? PAUSE : 0;
      entry.chosen = performance.now();
      report(entry, next, wait);
    },
    onPair: (pair) => entry.setStateValue("pair", pair),
    onOpen: (page) => {
      reportNow(entry);
      entry.setTriggerValue("open", page);
    },
  });
  entry.explorer = explorer;
  lastSettings = explorer.settings;
  const {packet} = openChannel();
  if (packet) explorer.receive(packet);
  if (message?.ranking) explorer.rank(message.ranking);
  // The last choice was made on the old data: the server hears of what became of it.
  if (before?.pending) report(entry, explorer.choice());
}

/**
 * What was on the screen before: in the same element, or the settings of the one before it, which Streamlit may have
 * taken off the page some moments ago to build it anew.
 * @param {Entry | undefined} before
 * @returns {Entry["before"]}
 */
function left(before) {
  if (!before) return {settings: lastSettings()};
  const {explorer} = before;
  return explorer ? {choice: explorer.choice(), settings: explorer.settings()} : before.before;
}

/** @param {HTMLElement} parentElement */
function hostIn(parentElement) {
  const host = parentElement.querySelector(".av-host");
  if (!(host instanceof HTMLElement)) throw new Error("its place on the page is not there");
  return host;
}

/**
 * Hear the page's own choices, and when the reader turns to something else.
 * @param {HTMLElement} host
 * @param {Entry} entry
 */
function listen(host, entry) {
  const {signal} = entry.listening;
  listenToChannel((message) => follow(entry, message), signal);
  openChannel().target.addEventListener(
    "packet",
    (event) => entry.explorer?.receive(/** @type {CustomEvent<Uint8Array>} */ (event).detail),
    {signal},
  );
  host.addEventListener("pointerleave", () => reportNow(entry), {signal});
  host.addEventListener(
    "focusout",
    ({relatedTarget}) => {
      if (!(relatedTarget instanceof Node && host.contains(relatedTarget))) reportNow(entry);
    },
    {signal},
  );
}

/**
 * Tell the server what was chosen, once the reader has paused.
 * @param {Entry} entry
 * @param {HeadChoice} choice
 * @param {number} wait
 */
function report(entry, choice, wait = PAUSE) {
  entry.pending = {...choice, serial: entry.serial};
  clearTimeout(entry.timer);
  if (wait > 0) entry.timer = setTimeout(() => reportNow(entry), wait);
  else reportNow(entry);
}

/**
 * Tell it without waiting, so that a download pressed next is of the head on the screen.
 * @param {Entry} entry
 */
function reportNow(entry) {
  clearTimeout(entry.timer);
  const choice = entry.pending;
  entry.pending = null;
  if (choice) entry.setStateValue("choice", choice);
}

/**
 * Follow the page's own pickers, unless the reader has chosen something since that the server hasn't heard of.
 * @param {Entry} entry
 * @param {Message} message
 */
function follow(entry, message) {
  const seen = message.seen ?? 0;
  if (!isMeant(entry.parentElement, message)) return;
  if (message.ranking) entry.explorer?.rank(message.ranking);
  if (seen < entry.serial) return;
  entry.serial = seen;
  entry.explorer?.choose(message);
}

/**
 * Clean up once the element has left the page. Until then the function may be called for it again, on a busy machine
 * after a while: an explorer built anew would lose the focus and the pinned tokens.
 * @param {HTMLElement} parentElement
 * @param {Entry} entry
 * @param {number} wait
 */
function cleanUp(parentElement, entry, wait = LEAVING) {
  entry.leaving = setTimeout(() => {
    if (parentElement.isConnected) {
      cleanUp(parentElement, entry, STAYING);
      return;
    }
    // What was chosen just before would be lost with the element.
    reportNow(entry);
    stop(entry);
    if (running.get(parentElement) === entry) running.delete(parentElement);
  }, wait);
}

/** @param {Entry} entry */
function stop(entry) {
  const {explorer} = entry;
  clearTimeout(entry.timer);
  entry.listening.abort();
  if (!explorer) return;
  if (lastSettings === explorer.settings) {
    // An explorer holds its data: of one that is gone only the settings stay.
    const settings = explorer.settings();
    lastSettings = () => settings;
  }
  explorer.destroy();
}

/**
 * @param {HTMLElement} parentElement
 * @param {Error} error
 */
function showFailure(parentElement, error) {
  console.error(error);
  const note = document.createElement("p");
  note.setAttribute("role", "alert");
  note.textContent = `The explorer could not be drawn: ${error.message}`;
  (parentElement.querySelector(".av-host") ?? parentElement).replaceChildren(note);
}
