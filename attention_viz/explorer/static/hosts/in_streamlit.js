// The explorer as a Streamlit component. Called again for new data and for a change of theme, on the same element.

import {isMeant, latestFor, openChannel, sameBytes, themeOf} from "./hosting.js";
import {mountExplorer} from "../explorer.js";

const PAUSE = 100;
const WAIT_FOR_CHOICE = 120;
const running = new WeakMap();

export default function explorerComponent({data, parentElement, setStateValue}) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(0);
  const before = running.get(parentElement);
  clearTimeout(before?.leaving);
  if (before && sameBytes(before.bytes, bytes)) {
    before.tell = setStateValue;
    before.explorer?.refresh();
    return () => leave(parentElement, before);
  }
  const entry = {
    bytes,
    tell: setStateValue,
    parentElement,
    serial: before?.serial ?? 0,
    explorer: null,
    // What the reader chose and the server hasn't been told yet.
    unheard: null,
    timer: 0,
    listening: new AbortController(),
  };
  running.set(parentElement, entry);
  start(parentElement, entry, before).catch((error) => showFailure(parentElement, error));
  return () => leave(parentElement, entry);
}

/** Show new data where the old was; the head and the settings stay. */
async function start(parentElement, entry, before) {
  const host = parentElement.querySelector(".av-host");
  listen(host, entry);
  entry.kept = before?.explorer
    ? {choice: before.explorer.choice(), settings: before.explorer.settings()}
    : (before?.kept ?? {});
  if (before) stop(before);
  else if (!latestFor(parentElement)) await new Promise((resolve) => setTimeout(resolve, WAIT_FOR_CHOICE));
  if (running.get(parentElement) !== entry || entry.listening.signal.aborted) return;
  const told = latestFor(parentElement);
  if (told) entry.serial = Math.max(entry.serial, told.seen ?? 0);
  entry.explorer = mountExplorer(host, entry.bytes, {
    ...entry.kept,
    choice: entry.kept.choice ?? told,
    theme: () => themeOf(host),
    onChoice: (next) => {
      entry.serial += 1;
      report(entry, next);
    },
  });
  // The last choice was made on the old data: the server hears of what became of it.
  if (before?.unheard) report(entry, entry.explorer.choice());
}

/** Hear the page's own choices, and when the reader turns to something else. */
function listen(host, entry) {
  const {signal} = entry.listening;
  openChannel().target.addEventListener("choice", ({detail}) => follow(entry, detail), {signal});
  host.addEventListener("pointerleave", () => tellNow(entry), {signal});
  host.addEventListener("focusout", ({relatedTarget}) => host.contains(relatedTarget) || tellNow(entry), {signal});
}

/** Tell the server what was chosen, once the reader has paused. */
function report(entry, choice) {
  entry.unheard = {...choice, serial: entry.serial};
  clearTimeout(entry.timer);
  entry.timer = setTimeout(() => tellNow(entry), PAUSE);
}

/** Tell it without waiting, so that a download pressed next is of the head on the screen. */
function tellNow(entry) {
  clearTimeout(entry.timer);
  const told = entry.unheard;
  entry.unheard = null;
  if (told) entry.tell("choice", told);
}

/** Follow the page's own pickers, unless the reader has chosen something since that the server hasn't heard of. */
function follow(entry, told) {
  if (!isMeant(entry.parentElement, told) || (told.seen ?? 0) < entry.serial) return;
  entry.serial = Math.max(entry.serial, told.seen ?? 0);
  entry.explorer?.choose(told);
}

/** Clean up, unless the function is called again for the same element at once. */
function leave(parentElement, entry) {
  entry.leaving = setTimeout(() => {
    stop(entry);
    if (running.get(parentElement) === entry) running.delete(parentElement);
  }, 50);
}

function stop(entry) {
  clearTimeout(entry.timer);
  entry.listening.abort();
  entry.explorer?.destroy();
}

function showFailure(parentElement, error) {
  console.error(error);
  const note = document.createElement("p");
  note.setAttribute("role", "alert");
  note.textContent = `The explorer could not be drawn: ${error.message}`;
  parentElement.querySelector(".av-host").replaceChildren(note);
}
