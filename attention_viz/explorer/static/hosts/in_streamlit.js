// The explorer as a Streamlit component. Called again for new data and for a change of theme, on the same element.

import {countChoice, mountComponent, takesChoice} from "./component.js";
import {isEmbedded, isInPart, latestFor, openChannel, pageStyled, themeOf} from "./hosting.js";
import {mountExplorer} from "../explorer.js";
import {element, listener} from "../parts/element.js";

/** @import {Mounted} from "./component.js"
 * @import {Message, Mounting} from "./hosting.js"
 * @import {Explorer, Settings} from "../explorer.js"
 * @import {HeadChoice} from "../data/recording.js" */

/** An explorer on the page: `before` is what was on the screen before this data came, `pending` what the reader chose,
 * at the time `chosen`, and the server hasn't heard of yet.
 * @typedef {Mounted & {explorer: Explorer | null, before: {choice?: HeadChoice, settings?: Settings | undefined} | null, pending: (HeadChoice & {serial: number}) | null, chosen: number, timer: number}} Entry */

const PAUSE = 100;
// Choices that follow each other sooner than this are steps of a walk.
const WALKING = 400;
const WAIT_FOR_CHOICE = 120;
/** What was set beside the explorer that began last, also once it is gone. @type {() => Settings | undefined} */
let lastSettings = () => undefined;

/** @param {Mounting} mounting */
export default function explorerComponent(mounting) {
  return mountComponent(mounting, {
    ...{selector: ".av-host", hear: follow},
    create(base) {
      /** @type {Entry} */
      const entry = {...base, explorer: null, before: null, pending: null, chosen: -Infinity, timer: 0};
      listen(entry);
      return entry;
    },
    load: (entry, bytes) => start(entry, bytes).catch((error) => showFailure(entry.root, error)),
    draw: ({explorer}) => explorer?.refresh(),
    leave(entry) {
      // What was chosen just before would be lost with the element.
      reportNow(entry);
      stop(entry);
    },
  });
}

/** Show new data where the old was; the head and the settings stay, also those of an element that Streamlit may have
 * taken off the page some moments ago to build it anew.
 * @param {Entry} entry @param {Uint8Array} bytes */
async function start(entry, bytes) {
  const {explorer: old, before: waiting, pending, root, parentElement} = entry;
  const before = old
    ? {choice: old.choice(), settings: old.settings()}
    : (waiting ?? {settings: isEmbedded(root) ? undefined : lastSettings()});
  entry.pending = null; // the old explorer loses the focus as it goes, which would report it
  stop(entry);
  Object.assign(entry, {before, explorer: null, chosen: -Infinity});
  if (!waiting && !latestFor(parentElement)) await new Promise((resolve) => setTimeout(resolve, WAIT_FOR_CHOICE));
  await pageStyled();
  if (entry.data !== bytes || entry.signal.aborted) return;
  const message = latestFor(parentElement);
  // The page may have chosen while there was no explorer to hear it.
  const taken = message && takesChoice(entry, message) ? message : null;
  const explorer = mountExplorer(root, bytes, {
    settings: before.settings,
    choice: taken ?? before.choice ?? message,
    theme: () => themeOf(root),
    crossing: isInPart(parentElement, "cross"),
    onChoice: (next) => {
      countChoice(entry);
      // What has to come from the server is asked for at once, unless the reader is walking through the heads.
      const wait = entry.explorer?.holds(next) || performance.now() - entry.chosen < WALKING ? PAUSE : 0;
      entry.chosen = performance.now();
      report(entry, next, wait);
    },
    onPair: (pair) => entry.setStateValue("pair", pair),
    ...(isEmbedded(root) ? {} : {onOpen: (page) => openPage(entry, page)}),
  });
  entry.explorer = explorer;
  lastSettings = explorer.settings;
  for (const packet of openChannel().packets.values()) explorer.receive(packet);
  if (message?.ranking) explorer.rank(message.ranking);
  // The last choice was made on the old data: the server hears of what became of it.
  if (pending) report(entry, explorer.choice());
}

/** Go to another page of the app, with what is chosen here. @param {Entry} entry @param {string} page */
function openPage(entry, page) {
  reportNow(entry);
  entry.setTriggerValue("open", page);
}

/** Hear when the reader turns to something else. @param {Entry} entry */
function listen(entry) {
  const {root, signal} = entry;
  const receive = (/** @type {Event} */ event) =>
    entry.explorer?.receive(/** @type {CustomEvent<Uint8Array>} */ (event).detail);
  openChannel().target.addEventListener("packet", receive, {signal});
  const on = listener(root, signal);
  on("pointerleave", () => reportNow(entry));
  on("focusout", ({relatedTarget}) => {
    if (!(relatedTarget instanceof Node && root.contains(relatedTarget))) reportNow(entry);
  });
}

/** Tell the server what was chosen, once the reader has paused.
 * @param {Entry} entry @param {HeadChoice} choice @param {number} wait */
function report(entry, choice, wait = PAUSE) {
  entry.pending = {...choice, serial: entry.serial};
  clearTimeout(entry.timer);
  if (wait > 0) entry.timer = setTimeout(() => reportNow(entry), wait);
  else reportNow(entry);
}

/** Tell it without waiting, so that a download pressed next is of the head on the screen. @param {Entry} entry */
function reportNow(entry) {
  clearTimeout(entry.timer);
  const choice = entry.pending;
  entry.pending = null;
  if (choice) entry.setStateValue("choice", choice);
}

/** Follow the page's own pickers, unless the reader has chosen something since that the server hasn't heard of.
 * @param {Entry} entry @param {Message} message */
function follow(entry, message) {
  if (message.ranking) entry.explorer?.rank(message.ranking);
  if (message.outcome) entry.explorer?.tell(message.outcome);
  else if (takesChoice(entry, message)) entry.explorer?.choose(message);
}

/** @param {Entry} entry */
function stop(entry) {
  const {explorer} = entry;
  clearTimeout(entry.timer);
  if (!explorer) return;
  if (lastSettings === explorer.settings) {
    // An explorer holds its data: of one that is gone only the settings stay.
    const settings = explorer.settings();
    lastSettings = () => settings;
  }
  explorer.destroy();
}

/** @param {HTMLElement} host @param {Error} error */
function showFailure(host, error) {
  console.error(error);
  host.replaceChildren(element("p", {role: "alert"}, `The explorer could not be drawn: ${error.message}`));
}
