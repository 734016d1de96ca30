// What a component of ours needs of Streamlit's page: messages about what the page chose, and the page's theme.

/** Where the channel component leaves its messages (see channel.js). */
export function openChannel() {
  return (globalThis[Symbol.for("attention_viz.explorer")] ??= {latest: new Map(), target: new EventTarget()});
}

/** The last message for the component at this element, if there was one. */
export function latestFor(parentElement) {
  return [...openChannel().latest.values()].find((told) => isMeant(parentElement, told));
}

/** Whether a message is for this component. Streamlit writes a component's key into a class of an element around it. */
export function isMeant(parentElement, {explorer}) {
  const host = parentElement.getRootNode().host ?? parentElement;
  return host.closest(`.st-key-${CSS.escape(explorer.replace(/[^\w-]/g, "-"))}`) !== null;
}

/** A plain loop: several megabytes are compared whenever the page runs again. */
export function sameBytes(one, other) {
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/** Whether the host's page is dark: by the lightness of its background. */
export function themeOf(host) {
  const colour = getComputedStyle(host).getPropertyValue("--st-background-color").trim();
  const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  probe.fillStyle = colour || "#ffffff";
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? "dark" : "light";
}
