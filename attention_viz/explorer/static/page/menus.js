// What a button opens stands at the end of the document, so that the Tab key would pass all of the page before it comes
// there. With this it goes from the button into what that opened, and from there on to what follows the button.

const [OPEN, BODY] = ['[data-testid="stPopoverButton"][aria-expanded="true"]', '[data-testid="stPopoverBody"]'];
const REACHED = "a[href], button, input, select, textarea, [tabindex]";

/** Have the Tab key go through an open menu where its button stands. @returns {() => void} ends it */
export function tabThroughMenus() {
  // One of its own for each call: the one before may end after the next has begun.
  const press = (/** @type {KeyboardEvent} */ event) => goThrough(event);
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

/** @param {KeyboardEvent} event */
function goThrough(event) {
  if (event.key !== "Tab" || event.defaultPrevented) return;
  const [button, body] = [OPEN, BODY].map((each) => [...document.querySelectorAll(each)].at(-1));
  const focused = document.activeElement;
  if (!body || !focused || !(button instanceof HTMLElement)) return;
  const inside = reachedIn(body);
  if (focused === button && !event.shiftKey && inside.length) {
    event.preventDefault();
    event.stopImmediatePropagation();
    entered(inside).focus();
    return;
  }
  const place = inside.findIndex((one) => one === focused);
  if (place < 0) return;
  const left = event.shiftKey ? inside.slice(0, place) : inside.slice(place + 1);
  // Of buttons of which one is chosen only that one is reached by Tab.
  if (!left.every((one) => isBeside(one, focused))) return;
  // From the button the browser goes on by itself; back, the button is what comes next.
  if (event.shiftKey) event.preventDefault();
  event.stopImmediatePropagation();
  button.focus();
}

/** What the Tab key reaches, in order. @param {Element} place @returns {HTMLElement[]} */
function reachedIn(place) {
  return [...place.querySelectorAll(REACHED)].flatMap((one) =>
    one instanceof HTMLElement && isReached(one) ? [one] : [],
  );
}

/** Whether the Tab key stops at something once it is inside: Streamlit takes all of it out of the way while it isn't,
 * and keeps there what it had before.
 * @param {HTMLElement} one */
function isReached(one) {
  const order = Number(one.dataset["tabindex"] ?? one.tabIndex);
  return order >= 0 && !one.matches(":disabled") && one.checkVisibility({visibilityProperty: true});
}

/** What is reached first: of choices of one question the one that is made. @param {HTMLElement[]} inside */
function entered(inside) {
  const [first] = inside;
  return inside.find((one) => isBeside(one, first) && one.matches(":checked")) ?? first;
}

/** Whether both are choices of one question. @param {Element} one @param {Element} other */
function isBeside(one, other) {
  const [left, right] = [one, other].map((each) =>
    each instanceof HTMLInputElement && each.type === "radio" ? each.name : "",
  );
  return left !== "" && left === right;
}
