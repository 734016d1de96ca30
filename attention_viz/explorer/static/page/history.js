// Back takes one step back: the page writes what it chose by itself into the address, too, such as the head that it opens
// on, and Streamlit makes an entry of the browser's history of each such change. An entry is what a reader did. Of a link
// that leads to another page, what that one writes may come first, while the address is still the old page's.

// What a reader does that may change the address.
const DOES = ["pointerdown", "click", "keydown", "input"];

/** Have whatever the page writes into the address by itself belong to the entry that is there. Done once, it stays. */
export function keepOneEntry() {
  if (Object.hasOwn(history, "pushState")) return;
  const push = history.pushState.bind(history);
  let [done, added] = [false, false];
  for (const kind of DOES) document.addEventListener(kind, () => (done = true), {capture: true, passive: true});
  history.pushState = (state, unused, address) => {
    const {pathname, search} = new URL(address ?? "", location.href);
    // What another page writes may have made the entry already that its own address belongs to.
    const here = pathname === location.pathname || (added && search === location.search);
    added = done || !here;
    if (added) push(state, unused, address);
    else history.replaceState(state, unused, address);
    done = false;
  };
}
