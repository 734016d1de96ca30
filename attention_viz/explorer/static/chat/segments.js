// A chat folded into its segments: how much of each one's rows the chosen head gives to which. Opening a segment shows
// its part of the matrix, token by token.

import {layerNumber} from "../heads/numbers.js";
import {arrowStep, element, focusOne, focused, within} from "../parts/element.js";
import {SCALES, inkOn, onRamp, rgb, weightText} from "../data/scale.js";
import {hasAny} from "../data/store.js";
import {segmentWeights} from "./weights.js";

/** @import {State, View} from "../parts/view.js"
 * @import {Places} from "../data/head.js"
 * @import {PackedSegments} from "../data/payload.js"
 * @import {Viewport} from "../data/viewport.js" */

/** @typedef {Pick<View, "store" | "recording" | "now" | "colours" | "pin">} SegmentView */

/** The folded matrix: `open` shows a part of the matrix of tokens, null all of it.
 * @typedef {object} Segments
 * @property {HTMLElement} fold  the button that folds and unfolds
 * @property {HTMLElement} place  where the folded matrix is
 * @property {HTMLElement} part  names the opened part
 * @property {() => boolean} folds  whether it is shown in place of the matrix of tokens
 * @property {(changed: Set<keyof State>) => void} draw */

/** What the matrix of segments follows from. @type {(keyof State)[]} */
const SHOWN = ["stream", "layer", "head", "preview", "loaded", "hideSpecial", "scale", "theme", "size"];
const TO_FOLD = "Segments";
const TO_UNFOLD = "Tokens";

/** @param {SegmentView} view @param {(window: Pick<Viewport, "top" | "bottom" | "left" | "right"> | null) => void} open
 * @param {() => void} turned  the matrix of tokens has to come or go
 * @returns {Segments} */
export function createSegments(view, open, turned) {
  const {segments, long} = view.recording.header;
  const fold = element("button", {type: "button", "data-testid": "explorer-fold", onclick: () => turn(!folded)});
  const place = element("div", {class: "av-chat", "data-testid": "explorer-segments"});
  const part = element("p", {class: "av-quiet", "data-testid": "explorer-part", "aria-live": "polite", hidden: true});
  place.addEventListener("click", (event) => choose(within(event, "[data-from], [data-to]")));
  place.addEventListener("keydown", (event) => walkSegments(place, event));
  // A long chat begins folded.
  let folded = Boolean(segments && long);
  return {
    ...{fold, place, part},
    folds: () => folded && hasSegments(view, segments),
    draw: (changed) => {
      const here = hasSegments(view, segments);
      fold.hidden = !here;
      place.hidden = !here || !folded;
      if (!here || hasAny(changed, "stream", "hideSpecial")) part.hidden = true;
      fold.textContent = folded ? TO_UNFOLD : TO_FOLD;
      fold.title = folded ? "Show the matrix of all tokens" : "Fold the chat into its segments";
      if (segments && folded && here && hasAny(changed, ...SHOWN)) fillSegments(view, place, segments);
    },
  };

  /** @param {boolean} next */
  function turn(next) {
    folded = next;
    part.hidden = true;
    if (!folded) open(null);
    turned();
  }

  /** @param {HTMLElement | null} cell */
  function choose(cell) {
    if (!segments || cell === null) return;
    const {rows, columns} = view.now;
    const [down, across] = [
      segmentSpan(segments, cell.dataset["from"], rows),
      segmentSpan(segments, cell.dataset["to"], columns),
    ];
    if (down === null || across === null) return;
    folded = false;
    part.textContent = cell.getAttribute("aria-label") ?? "";
    part.hidden = false;
    turned();
    open({top: down[0], bottom: down[1], left: across[0], right: across[1]});
    // The line of tokens follows.
    if (cell.dataset["from"]) view.pin({query: rows[down[0]], key: null}, {pair: false});
    fold.focus({preventScroll: true});
  }
}

/** Whether what is on the screen is of the text that has segments.
 * @param {SegmentView} view @param {PackedSegments | undefined} segments */
function hasSegments({now}, segments) {
  return segments !== undefined && segments.stream === now.stream.name;
}

/** Where a segment's tokens are among those in sight; everything without a name, null where none is in sight.
 * @param {PackedSegments} segments @param {string | undefined} name @param {Places} places
 * @returns {[first: number, after: number] | null} */
export function segmentSpan({spans}, name, places) {
  if (name === undefined) return [0, places.length];
  if (name === "sink") return places[0] === 0 ? [0, 1] : null;
  const found = spans.find(([one]) => one === name);
  if (!found) return null;
  const [first, after] = [found[1], found[2]].map((end) => {
    const at = places.findIndex((position) => position >= end);
    return at < 0 ? places.length : at;
  });
  return first < after ? [first, after] : null;
}

/** @param {SegmentView} view @param {HTMLElement} place @param {PackedSegments} segments */
function fillSegments(view, place, segments) {
  const {at, stream} = view.now;
  const weights = segmentWeights(view.recording, {stream: stream.name, ...at});
  const before = [...place.querySelectorAll("button")].findIndex((one) => one === focused(place));
  const name = `Layer ${layerNumber(stream.layers, at.layer)} head ${at.head}`;
  const caption = element(
    "caption",
    {},
    element("span", {class: "av-query"}, "Segments \u2193"),
    " attend to ",
    element("span", {class: "av-keys"}, "segments \u2192"),
    element("span", {class: "av-sr"}, `, ${name}: each row\u2019s weights, summed per segment; their mean per segment`),
  );
  const head = element(
    "tr",
    {},
    element("th", {scope: "col"}, "tokens"),
    ...segments.columns.map((to) => element("th", {scope: "col"}, segmentHeading(segments, "to", to))),
  );
  const rows = segments.rows.map((from, row) =>
    element(
      "tr",
      {},
      element("th", {scope: "row"}, segmentHeading(segments, "from", from)),
      ...segments.columns.map((to, column) =>
        element(
          "td",
          {},
          segmentCell(view, segments, from, to, weights && weights[row * segments.columns.length + column]),
        ),
      ),
    ),
  );
  place.replaceChildren(
    element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows)),
    element(
      "p",
      {class: "av-quiet"},
      "Mean over a segment\u2019s rows. sink: the first token; other: the chat template. Click a segment to open it.",
    ),
  );
  const buttons = place.querySelectorAll("button");
  const [first] = buttons;
  for (const one of buttons) one.tabIndex = one === first ? 0 : -1;
  if (before >= 0) focusOne(buttons, buttons[before]);
}

/** A segment's name, as a button where it can be opened.
 * @param {PackedSegments} segments @param {"from" | "to"} side @param {string} name */
function segmentHeading({spans}, side, name) {
  const found = spans.find(([one]) => one === name);
  const count = found ? element("span", {class: "av-quiet"}, ` ${found[2] - found[1]}`) : null;
  if (!found) return element("span", {class: "av-quiet"}, name);
  const label = side === "from" ? `Open the rows of ${name}` : `Open the columns of ${name}`;
  return element("button", {type: "button", [`data-${side}`]: name, "aria-label": label}, name, count);
}

/** @param {SegmentView} view @param {PackedSegments} segments @param {string} from @param {string} to
 * @param {number | null} weight */
function segmentCell({colours, now}, {spans}, from, to, weight) {
  const text = weight === null ? "\u2026" : weightText(weight);
  const colour = onRamp(colours.ramp, weight === null ? 0 : SCALES[now.scale].place(weight, now.maximum));
  // Not as an attribute: a saved page allows no style of its own there.
  const coloured = (/** @type {HTMLElement} */ node) => {
    Object.assign(node.style, {background: rgb(colour), color: inkOn(colour)});
    return node;
  };
  const opens = spans.some(([one]) => one === from) && (to === "sink" || spans.some(([one]) => one === to));
  if (!opens) return coloured(element("span", {}, text));
  const label = `${from} to ${to}: ${text}`;
  return coloured(element("button", {type: "button", "data-from": from, "data-to": to, "aria-label": label}, text));
}

/** Arrow keys go from button to button. @param {HTMLElement} place @param {KeyboardEvent} event */
function walkSegments(place, event) {
  const step = arrowStep(event.key);
  const cell = within(event, "th, td");
  if (!step || cell === null) return;
  const rows = [...place.querySelectorAll("tr")].map((row) => /** @type {HTMLElement[]} */ ([...row.children]));
  let row = rows.findIndex((cells) => cells.includes(cell));
  let column = rows[row].indexOf(cell);
  const [down, across] = step;
  for (;;) {
    row += down;
    column += across;
    const next = rows[row]?.[column];
    if (!next) break;
    const button = next.querySelector("button");
    if (button) {
      focusOne(place.querySelectorAll("button"), button);
      break;
    }
  }
  event.preventDefault();
}
