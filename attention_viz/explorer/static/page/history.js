// Back takes one step back: the page writes what it chose by itself into the address, too, such as the head that it opens
// on, and Streamlit makes an entry of the browser's history of each such change. An entry is what a reader did.

// What a reader does that may change the address.
const DOES = ["pointerdown", "click", "keydown", "input"];

/** Have whatever the page writes into the address by itself belong to the entry that is there. Done once, it stays. */
export function keepOneEntry() {
  if (Object.hasOwn(history, "pushState")) return;
  const push = history.pushState.bind(history);
  let done = false;
  for (const kind of DOES) document.addEventListener(kind, () => (done = true), {capture: true, passive: true});
  history.pushState = (state, unused, address) => {
    if (done || leadsElsewhere(address)) push(state, unused, address);
    else history.replaceState(state, unused, address);
    done = false;
  };
}

/**
 * Whether an address is another page's: of two links that are pressed one after the other, each page is an entry.
 * @param {string | URL | null | undefined} address
 */
function leadsElsewhere(address) {
  return new URL(address ?? "", location.href).pathname !== location.pathname;
}
