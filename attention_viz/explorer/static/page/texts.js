// A text is run by Enter, or by the button that comes up beside its box. Until then what is on the page is of the text
// before, and the page is marked so. A text that no link carries is kept by the tab, for when the page is loaded again.
// A link to another page waits until what was typed has been heard of.

// Milliseconds in which Streamlit puts a text that the server sent into its box; until then the page only loses its mark.
const SETTLED = [600, 1500];
// While the page is marked, how often it is looked at whether it still has to be: a box of the page before goes when the
// run ends, and nothing tells.
const EVERY = 100;

// A link of the app's own to another of its pages.
const LINK = 'a[data-testid="stPageLink-NavLink"]';
// Milliseconds within which a field that was left hands over what is in it; and for which a link waits at most until a
// text has been heard of, and how often it looks.
const [HANDED, HEARD, LOOK] = [80, 2000, 20];

// What stands before a box's key where the tab keeps its text.
const KEPT = "attention_viz-text-";

/** @type {AbortController | null} */
let listening = null;
// Whether the tab was asked for what it keeps, once the page is loaded.
let asked = false;
// The texts that the page was drawn from, by their boxes' keys, and when a field was left last.
/** @type {Record<string, string>} */
let drawn = {};
let left = -Infinity;

/**
 * @param {{data: {texts: Record<string, string>, long: string[]}, setTriggerValue: (name: string, value: unknown) => void}} host
 *   `texts` are those that the page was drawn from, by their boxes' keys; `long` the keys of those that no link carries
 * @returns {() => void} ends it
 */
export default function textsComponent({data, setTriggerValue}) {
  const before = asked ? {} : keptTexts();
  asked = true;
  drawn = data.texts;
  if (Object.keys(before).length) setTriggerValue("kept", before);
  else keep(data);
  listening?.abort();
  listening = new AbortController();
  const mine = listening;
  const {signal} = mine;
  let looking = 0;
  const mark = () => {
    if (signal.aborted) return;
    const stale = isStale();
    document.querySelector(".st-key-page")?.toggleAttribute("data-not-run", stale);
    if (stale) looking ||= setInterval(mark, EVERY);
    else stop();
  };
  const stop = () => {
    clearInterval(looking);
    looking = 0;
  };
  signal.addEventListener("abort", stop);
  // What was typed may come back from the server without the line breaks at its end, which nothing tells.
  const markSettled = () => {
    if (!isStale()) mark();
    for (const wait of SETTLED) setTimeout(mark, wait);
  };
  document.addEventListener("input", mark, {signal, passive: true});
  // A box that was run gives way to the answer, until somebody goes on in it.
  for (const kind of ["input", "pointerdown", "focusout"])
    document.addEventListener(kind, (event) => reopen(event.target), {signal, passive: true});
  const leave = () => {
    left = performance.now();
    markSettled();
  };
  document.addEventListener("focusout", leave, {signal, passive: true});
  // On the way down, before Streamlit follows it.
  document.addEventListener("click", hold, {signal, capture: true});
  // On the way down, before the box takes Enter for a line break.
  document.addEventListener("keydown", run, {signal, capture: true});
  markSettled();
  return () => mine.abort();
}

/** What the tab keeps of the page that was here before it was loaded again; nothing where an address was opened.
 * @returns {Record<string, string>} */
function keptTexts() {
  const [way] = performance.getEntriesByType("navigation");
  const again = way instanceof PerformanceNavigationTiming && way.type !== "navigate";
  if (!again) return {};
  // Not where the page is now: the server has written into the address what it opened on.
  const named = new URL(way.name).searchParams;
  try {
    const keys = Object.keys(sessionStorage).filter(
      (one) => one.startsWith(KEPT) && !named.has(one.slice(KEPT.length)),
    );
    return Object.fromEntries(keys.map((one) => [one.slice(KEPT.length), sessionStorage.getItem(one) ?? ""]));
  } catch {
    return {}; // a browser may keep nothing, and say so
  }
}

/** @param {{texts: Record<string, string>, long: string[]}} data */
function keep({texts, long}) {
  try {
    for (const [key, text] of Object.entries(texts))
      if (long.includes(key)) sessionStorage.setItem(KEPT + key, text);
      else sessionStorage.removeItem(KEPT + key);
  } catch {
    // Kept by nobody, then: the page says that a link leaves it out.
  }
}

/** @param {string} key @returns {HTMLTextAreaElement | null} */
function boxOf(key) {
  return document.querySelector(`.st-key-${CSS.escape(key)} textarea`);
}

function isStale() {
  return Object.entries(drawn).some(([key, text]) => {
    const box = boxOf(key);
    return box !== null && box.value !== text;
  });
}

/** @param {EventTarget | null} box */
function reopen(box) {
  if (box instanceof HTMLTextAreaElement) delete box.dataset["ran"];
}

/** Streamlit runs a text at Ctrl+Enter; Shift+Enter stays a line break. @param {KeyboardEvent} event */
function run(event) {
  const {key, target} = event;
  if (key !== "Enter" || event.shiftKey || event.altKey || event.isComposing) return;
  const box = Object.keys(drawn)
    .map(boxOf)
    .find((one) => one !== null && one === target);
  if (!box) return;
  // A box that was run gives way to the answer, by whichever keys, and shows how its text begins.
  box.dataset["ran"] = "";
  box.scrollTop = 0;
  if (event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  box.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", code: "Enter", ctrlKey: true, bubbles: true}));
}

/** Has a link wait for what was typed. A field hands that over a moment after it was left, so that a tap on a link
 * would be heard of first: the page would come back, without the text.
 * @param {MouseEvent} event */
function hold(event) {
  const link = event.target instanceof Element ? event.target.closest(LINK) : null;
  const aside = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (!(link instanceof HTMLElement) || !event.isTrusted || aside) return;
  const begun = performance.now();
  if (!isStale() && begun - left > HANDED) return;
  event.preventDefault();
  event.stopPropagation();
  const follow = () => {
    const waited = performance.now() - begun;
    if (waited < HANDED || (isStale() && waited < HEARD)) setTimeout(follow, LOOK);
    else (link.isConnected ? link : linkTo(link.textContent))?.click();
  };
  follow();
}

/** The link that has come in the place of one that is gone.
 * @param {string | null} name @returns {HTMLElement | undefined} */
function linkTo(name) {
  const links = Array.from(/** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(LINK)));
  return links.find((one) => one.textContent === name);
}
