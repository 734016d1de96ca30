// When the server is gone, Streamlit says so in a dialog: it asks for an internet that nothing here needs, or for a
// command that nobody here knows. This says what is so: what is on the page stays, and what comes next.

import {element} from "../parts/element.js";

const TOLD =
  "The server of this app doesn't respond: it stopped, or the network is down. This page and everything that you typed " +
  "are safe. Leave the page open: it continues once the server is back.";

/** Tell of a lost server in the app's own words, in the dialog that comes up then. @returns {() => void} ends it */
export function tellOfLoss() {
  const watching = new MutationObserver(retell);
  watching.observe(document.body, {childList: true});
  retell();
  return () => watching.disconnect();
}

function retell() {
  const state = document.querySelector(".stApp")?.getAttribute("data-test-connection-state");
  const dialog = state === "CONNECTED" ? null : document.querySelector('.stDialog [role="dialog"]');
  const theirs = dialog?.querySelector("h2 + div");
  if (!dialog || !(theirs instanceof HTMLElement) || theirs.hidden) return;
  theirs.hidden = true;
  theirs.after(element("div", {class: theirs.className}, TOLD));
}
