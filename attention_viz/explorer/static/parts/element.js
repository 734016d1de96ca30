// Elements of the page. Whatever comes from a text is only ever set as text, never as markup.

/** Attributes by name; names with `on…` are listeners. True is an attribute without a value, false, null and undefined
 * none at all.
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => unknown)>} Attributes */

/** An element with attributes and children; null children are left out.
 * @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Attributes} attributes
 * @param {...(Node | string | null | undefined)} children @returns {HTMLElementTagNameMap[T]} */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  // What is isolated mixes a word with marks and numbers: of one from right to left they stand where they always do.
  if (tag === "bdi") node.dir = "ltr";
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) Reflect.set(node, name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/** Attributes of an element of a drawing, by name; false, null and undefined are none at all.
 * @typedef {Record<string, string | number | boolean | null | undefined>} Marks */

// The name of SVG's space, as the browser has it: a page that is one file names no host, not even this one.
/** @type {string | null} */
let svgSpace = null;

/** An element of a drawing; children that are null or undefined are left out.
 * @param {string} tag @param {Marks} attributes @param {...(Node | string | null | undefined)} children
 * @returns {SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  svgSpace ??= new DOMParser().parseFromString("<svg>", "text/html").querySelector("svg")?.namespaceURI ?? null;
  const node = /** @type {SVGElement} */ (document.createElementNS(svgSpace, tag));
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, String(value));
  node.append(...children.filter((child) => child != null));
  return node;
}

/** The element that fits a selector and that an event happened in, or null.
 * @param {Event} event @param {string} selector */
export function within(event, selector) {
  return event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest(selector)) : null;
}

// Where the pointer was last, on the screen: in the page, since the script that saw it may be another component's.
const LAST_POINTED = Symbol.for("attention_viz.pointed");
const onPage = /** @type {Record<symbol, string | undefined>} */ (/** @type {unknown} */ (globalThis));
const placeOnScreen = (/** @type {MouseEvent} */ {screenX, screenY}) => `${screenX} ${screenY}`;
for (const name of ["pointermove", "pointerover"])
  globalThis.addEventListener?.(name, (event) => {
    onPage[LAST_POINTED] = placeOnScreen(/** @type {PointerEvent} */ (event));
  });

/** Whether a pointer points here: a finger presses, and what the page moves under a mouse at rest isn't pointed at.
 * @param {Event} event */
export function isPointing(event) {
  return (
    !(event instanceof PointerEvent) || (event.pointerType !== "touch" && placeOnScreen(event) !== onPage[LAST_POINTED])
  );
}

/** What hears events on a node until a signal aborts. @param {EventTarget} node @param {AbortSignal} signal */
export function listener(node, signal) {
  /** @template {keyof HTMLElementEventMap} N @param {N} name @param {(event: HTMLElementEventMap[N]) => unknown} hear */
  return (name, hear) => node.addEventListener(name, /** @type {EventListener} */ (hear), {signal});
}

/** What has the keyboard's focus, in the document or the shadow root that a node is in. @param {Node} node */
export function focused(node) {
  const root = node.getRootNode();
  return root instanceof Document || root instanceof ShadowRoot ? root.activeElement : null;
}

/** @type {Record<string, [down: number, across: number]>} */
const ARROWS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

/** Which way an arrow key leads; null for any other key. @param {string} key */
export function arrowStep(key) {
  return Object.hasOwn(ARROWS, key) ? ARROWS[key] : null;
}

/** Where a key leads along a line, maybe past its ends; null for a key that leads nowhere.
 * @param {string} key @param {number} at @param {number} count @param {boolean} [fromTheRight]  whether the line does */
export function placeByKey(key, at, count, fromTheRight = false) {
  const on = fromTheRight ? -1 : 1;
  const places = new Map([
    ["Home", 0],
    ["End", count - 1],
    ["ArrowLeft", at - on],
    ["ArrowRight", at + on],
  ]);
  return places.get(key) ?? null;
}

/** Give one of a group the focus, and have the Tab key stop at it alone.
 * @param {Iterable<HTMLElement | SVGElement>} group @param {HTMLElement | SVGElement | undefined} next */
export function focusOne(group, next) {
  for (const node of group) node.setAttribute("tabindex", node === next ? "0" : "-1");
  next?.focus();
}

/** Fit a canvas to a size in CSS pixels at the screen's own resolution; its context then draws in CSS pixels.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function fitCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
