// After an answer the reader's eyes and focus go where it is: Streamlit leaves them where the pressed button was, which
// may be far above, or gone.

const MAIN = '[data-testid="stMain"]';
const HEADING = ".st-key-learn-heading h1";

/** The answer that has been attended to; null before the first. @type {string | null} */
let attended = null;

/** @typedef {{lesson: string, heading: string, verdict: string}} Attending  each changes with what it names */

/** @param {Attending} now @param {string} before @returns {keyof Attending | null} what is new; the first that is */
export function newest(now, before) {
  const old = /** @type {Attending} */ (JSON.parse(before));
  if (now.lesson !== old.lesson) return "lesson";
  if (now.verdict !== old.verdict && now.verdict) return "verdict";
  return now.heading !== old.heading ? "heading" : null;
}

/** Go to what is new since the last call. @param {Attending} now */
export function attend(now) {
  const before = attended;
  attended = JSON.stringify(now);
  if (before === null || before === attended) return;
  const what = newest(now, before);
  const found = what && document.querySelector(what === "verdict" ? ".st-key-learn-verdict" : HEADING);
  if (!(found instanceof HTMLElement)) return;
  if (what !== "verdict") {
    attendToHeading(found);
    return;
  }
  found.tabIndex = -1;
  found.focus({preventScroll: true});
  found.scrollIntoView({block: "nearest"});
}

/** Begin a page anew. @param {HTMLElement | null} [heading] */
export function attendToHeading(heading = document.querySelector(HEADING)) {
  if (heading) heading.tabIndex = -1;
  heading?.focus({preventScroll: true});
  document.querySelector(MAIN)?.scrollTo(0, 0);
}
