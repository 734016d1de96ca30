// Who hears the page goes by its landmarks: the menu is one, and the link that skips it goes behind it. Streamlit's own
// link goes to the place where the menu begins.

const [SKIPS, MENU] = ['[data-testid="stSkipToContent"]', ".st-key-menu"];
// A lesson, else what comes after the menu.
const [LESSON, HEADER] = [".st-key-learn-screen", ".st-key-header"];

/** Name the menu, and have the link skip it. @returns {() => void} ends it */
export function markLandmarks() {
  const menu = document.querySelector(MENU);
  menu?.setAttribute("role", "navigation");
  menu?.setAttribute("aria-label", "Pages");
  const press = (/** @type {Event} */ event) => skipMenu(event);
  document.addEventListener("click", press, {capture: true});
  return () => document.removeEventListener("click", press, {capture: true});
}

/** @param {Event} event */
function skipMenu(event) {
  if (!(event.target instanceof Element) || !event.target.closest(SKIPS)) return;
  const behind = document.querySelector(LESSON) ?? followerOf(document.querySelector(HEADER));
  if (!(behind instanceof HTMLElement)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  behind.tabIndex = -1;
  behind.focus();
}

/** What comes after a part of the page, however deep Streamlit wraps it. @param {Element | null} part */
function followerOf(part) {
  for (let one = part; one && !one.matches(".st-key-page"); one = one.parentElement) {
    if (one.nextElementSibling) return one.nextElementSibling;
  }
  return null;
}
