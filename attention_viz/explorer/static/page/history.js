// Back takes one step back: the page writes what it chose by itself into the address, too, such as the head that it opens
// on, and Streamlit makes an entry of the browser's history of each such change. An entry is what a reader did. Of a link
// that leads to another page, what that one writes may come first, while the address is still the old page's.

// What a reader does that may change the address.
const DOES = ["pointerdown", "click", "keydown", "input"];

/** Have whatever the page writes into the address by itself belong to the entry that is there. Done once, it stays. */
export function keepOneEntry() {
  if (Object.hasOwn(history, "pushState")) return;
  const push = history.pushState.bind(history);
  let done = false;
  for (const kind of DOES) document.addEventListener(kind, () => (done = true), {capture: true, passive: true});
  history.pushState = (state, unused, address) => {
    if (done || leadsOn(address)) push(state, unused, address);
    else history.replaceState(state, unused, address);
    done = false;
  };
}

/**
 * Whether an address is another page's, and not what that one has just written already: of two links that are pressed one
 * after the other, each page is an entry.
 * @param {string | URL | null | undefined} address
 */
function leadsOn(address) {
  const {pathname, search} = new URL(address ?? "", location.href);
  return pathname !== location.pathname && search !== location.search;
}
