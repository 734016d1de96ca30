// A text is run by Enter, or by the button that comes up beside its box. Until then what is on the page is of the text
// before, and the page is marked so.

// Milliseconds in which Streamlit puts a text that the server sent into its box; until then the page only loses its mark.
const SETTLED = [600, 1500];
// While the page is marked, how often it is looked at whether it still has to be: a box of the page before goes when the
// run ends, and nothing tells.
const EVERY = 100;

/** @type {AbortController | null} */
let listening = null;

/**
 * @param {{data: {texts: Record<string, string>}}} host `texts` are those that the page was drawn from, by their boxes' keys
 * @returns {() => void} ends it
 */
export default function textsComponent({data}) {
  listening?.abort();
  listening = new AbortController();
  const mine = listening;
  const {signal} = mine;
  let looking = 0;
  const mark = () => {
    if (signal.aborted) return;
    const stale = isStale(data.texts);
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
    if (!isStale(data.texts)) mark();
    for (const wait of SETTLED) setTimeout(mark, wait);
  };
  document.addEventListener("input", mark, {signal, passive: true});
  // A box that was run gives way to the answer, until somebody goes on in it.
  for (const kind of ["input", "pointerdown", "focusout"])
    document.addEventListener(kind, (event) => reopen(event.target), {signal, passive: true});
  document.addEventListener("focusout", markSettled, {signal, passive: true});
  // On the way down, before the box takes Enter for a line break.
  document.addEventListener("keydown", (event) => run(event, data.texts), {signal, capture: true});
  markSettled();
  return () => mine.abort();
}

/**
 * @param {string} key
 * @returns {HTMLTextAreaElement | null}
 */
function boxOf(key) {
  return document.querySelector(`.st-key-${CSS.escape(key)} textarea`);
}

/** @param {Record<string, string>} texts */
function isStale(texts) {
  return Object.entries(texts).some(([key, text]) => {
    const box = boxOf(key);
    return box !== null && box.value !== text;
  });
}

/** @param {EventTarget | null} box */
function reopen(box) {
  if (box instanceof HTMLTextAreaElement) delete box.dataset["ran"];
}

/**
 * Streamlit runs a text at Ctrl+Enter; Shift+Enter stays a line break.
 *
 * @param {KeyboardEvent} event
 * @param {Record<string, string>} texts
 */
function run(event, texts) {
  const {key, target} = event;
  if (key !== "Enter" || event.shiftKey || event.altKey || event.isComposing) return;
  const box = Object.keys(texts)
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
