// What a teacher in front of a room needs: keys that press the page's own buttons, and a dot that follows the pointer.
//
// The buttons stay the page's: whoever can't use a key presses them, and nothing happens that they wouldn't do.

/** @type {Record<string, "next" | "back" | "end" | undefined>} */
const BUTTONS = {
  ArrowRight: "next",
  PageDown: "next",
  " ": "next",
  ArrowLeft: "back",
  PageUp: "back",
  Escape: "end",
};
const TYPED_INTO = "input, textarea, select, [contenteditable=true], [role=combobox], [role=listbox], [role=slider]";
const PRESSED = "button, a, summary";
// These turn pages, as in a reader: down or up.
/** @type {Record<string, boolean | undefined>} */
const PAGES = {PageDown: true, " ": true, PageUp: false};
const SIZE = 18,
  NEARLY = 24,
  PART = 0.8;
/** @type {AbortController | null} */
let listening = null;

/** @param {{data: {colour: string}}} mounting */
export default function teachingComponent({data}) {
  listening?.abort();
  listening = new AbortController();
  const mine = listening;
  const dot = makeDot(data.colour);
  // On the way down: a list keeps what it hears to itself.
  document.addEventListener("keydown", press, {signal: mine.signal, capture: true});
  document.addEventListener("pointermove", (event) => follow(dot, event), {signal: mine.signal, passive: true});
  document.addEventListener(
    "pointerleave",
    () => {
      dot.style.opacity = "0";
    },
    {signal: mine.signal},
  );
  mine.signal.addEventListener("abort", () => dot.remove());
  return () => mine.abort();
}

/** @param {KeyboardEvent} event */
function press(event) {
  const name = BUTTONS[event.key];
  if (!name || event.altKey || event.ctrlKey || event.metaKey) return;
  if (isTheirs(event, name)) return;
  const down = PAGES[event.key];
  if (down !== undefined && turnPage(down)) {
    event.preventDefault();
    return;
  }
  const button = /** @type {HTMLButtonElement | null} */ (document.querySelector(`.st-key-learn-${name} button`));
  if (!button || button.disabled) return;
  event.preventDefault();
  button.click();
}

/**
 * A list or a box has a use of its own for these keys; Escape closes an open list, and anywhere else it ends.
 * @param {KeyboardEvent} event
 * @param {"next" | "back" | "end"} name
 */
function isTheirs({key, target}, name) {
  if (!(target instanceof Element)) return false;
  if (name === "end") return Boolean(target.closest('[aria-expanded="true"]'));
  // A list that was just chosen from keeps the focus: closed, it has no use for them but the space bar.
  if (key !== " " && target.closest('[role=combobox][aria-expanded="false"]')) return false;
  return Boolean(target.closest(key === " " ? `${TYPED_INTO}, ${PRESSED}` : TYPED_INTO));
}

/**
 * What doesn't fit the screen is shown before the next lesson is; whether there was more to show.
 * @param {boolean} down
 */
function turnPage(down) {
  const main = document.querySelector('[data-testid="stMain"]');
  if (!main) return false;
  const left = down ? main.scrollHeight - main.clientHeight - main.scrollTop : main.scrollTop;
  if (left < NEARLY) return false;
  main.scrollBy({top: (down ? 1 : -1) * PART * main.clientHeight});
  return true;
}

/** @param {string} colour */
function makeDot(colour) {
  const dot = document.createElement("div");
  dot.dataset["testid"] = "learn-dot";
  dot.setAttribute("aria-hidden", "true");
  Object.assign(dot.style, {
    position: "fixed",
    left: "0",
    top: "0",
    width: `${SIZE}px`,
    height: `${SIZE}px`,
    borderRadius: "50%",
    background: colour,
    boxShadow: `0 0 14px 5px ${colour}`,
    opacity: "0",
    pointerEvents: "none",
    zIndex: "999999",
  });
  document.body.append(dot);
  return dot;
}

/**
 * @param {HTMLElement} dot
 * @param {PointerEvent} event
 */
function follow(dot, event) {
  dot.style.opacity = "0.75";
  dot.style.transform = `translate(${event.clientX - SIZE / 2}px, ${event.clientY - SIZE / 2}px)`;
}
