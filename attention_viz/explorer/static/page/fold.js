// On a phone the row of pickers is one line: the sentence, the model, the head. Pressed, it opens, and folds again.

/**
 * @param {{data: {text: string, place: string, what: string, changed?: string}, parentElement: HTMLElement | ShadowRoot}} host what is shown on the page
 */
export default function foldComponent({data, parentElement}) {
  const line = parentElement.querySelector("button") ?? parentElement.appendChild(document.createElement("button"));
  const [text, place, changed, sign] = ["text", "place", "changed", "sign"].map((name) => partOf(line, name));
  // What is read from right to left is cut at its end, too, which is on the left.
  text.dir = "auto";
  text.textContent = data.text;
  place.textContent = data.place;
  changed.textContent = data.changed ?? "";
  sign.textContent = "▾";
  const page = () => document.querySelector(".st-key-page");
  const tell = () => line.setAttribute("aria-expanded", String(page()?.hasAttribute("data-open") ?? false));
  line.type = "button";
  line.setAttribute("aria-label", `${data.what}: ${[data.text, data.place, data.changed].filter(Boolean).join(", ")}`);
  line.onclick = () => {
    page()?.toggleAttribute("data-open");
    tell();
  };
  tell();
}

/** @param {HTMLElement} line @param {string} name @returns {HTMLElement} */
function partOf(line, name) {
  const found = line.querySelector(`.${name}`);
  if (found instanceof HTMLElement) return found;
  const made = line.appendChild(document.createElement("span"));
  made.className = name;
  return made;
}
