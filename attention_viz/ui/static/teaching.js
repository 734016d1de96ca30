// What a teacher in front of a room needs: keys that press the page's own buttons, and a dot that follows the pointer.
//
// The buttons stay the page's: whoever can't use a key presses them, and nothing happens that they wouldn't do.

const BUTTONS = {
  ArrowRight: "next", PageDown: "next", " ": "next",
  ArrowLeft: "back", PageUp: "back",
  Escape: "end",
};
const TYPED_INTO = "input, textarea, select, [contenteditable=true], [role=combobox], [role=listbox], [role=slider]";
const PRESSED = "button, a, summary";
const SIZE = 18;
let listening = null;

export default function teachingComponent({data}) {
  listening?.abort();
  listening = new AbortController();
  const mine = listening;
  const dot = makeDot(data.colour);
  document.addEventListener("keydown", press, {signal: mine.signal});
  document.addEventListener("pointermove", (event) => follow(dot, event), {signal: mine.signal, passive: true});
  document.addEventListener("pointerleave", () => { dot.style.opacity = "0"; }, {signal: mine.signal});
  mine.signal.addEventListener("abort", () => dot.remove());
  return () => mine.abort();
}

function press(event) {
  const name = BUTTONS[event.key];
  if (!name || event.altKey || event.ctrlKey || event.metaKey) return;
  // A list or a box has a use of its own for these keys; leaving is the same everywhere.
  const own = event.key === " " ? `${TYPED_INTO}, ${PRESSED}` : TYPED_INTO;
  if (name !== "end" && event.target instanceof Element && event.target.closest(own)) return;
  const button = document.querySelector(`.st-key-learn-${name} button`);
  if (!button || button.disabled) return;
  event.preventDefault();
  button.click();
}

function makeDot(colour) {
  const dot = document.createElement("div");
  dot.dataset.testid = "learn-dot";
  dot.setAttribute("aria-hidden", "true");
  Object.assign(dot.style, {
    position: "fixed", left: "0", top: "0", width: `${SIZE}px`, height: `${SIZE}px`, borderRadius: "50%",
    background: colour, boxShadow: `0 0 14px 5px ${colour}`, opacity: "0", pointerEvents: "none", zIndex: "999999",
  });
  document.body.append(dot);
  return dot;
}

function follow(dot, event) {
  dot.style.opacity = "0.75";
  dot.style.transform = `translate(${event.clientX - SIZE / 2}px, ${event.clientY - SIZE / 2}px)`;
}
