// What was found in the run: a button for each, which shows it while it is pointed at and keeps it when pressed.

import {element, isPointing, within} from "../parts/element.js";
import {layerPlace} from "../heads/numbers.js";
import {sideOf} from "./claim.js";
import {findingAt} from "../data/pair.js";
import {weightText} from "../data/scale.js";
import {setApart} from "../data/spelling.js";

/** @import {Part, Preview, View} from "../parts/view.js"
 * @import {PackedFinding} from "../data/payload.js"
 * @import {Axis} from "../data/tokens.js" */

/** @typedef {Pick<View, "store" | "recording" | "now" | "preview" | "take">} FindingsView */

// So many pixels out of sight are none; so many at each end fade.
const [HIDDEN, FADE] = [4, 48];
// What repeated words or pieces look at, short enough for a button; of other kinds stand the two words.
/** @type {Record<string, string>} */
const JOBS = {
  "same token": "their earlier place",
  induction: "what followed last time",
};

/** The findings, best first. @param {FindingsView} view @returns {Part} */
export function createFindings(view) {
  const list = element("div", {class: "av-findings", role: "group", "aria-label": "Findings"});
  listenToFindings(view, list);
  const cue = cueMore(list);
  let chosen = "";
  return {
    node: list,
    draw(changed) {
      if (changed.has("stream") || changed.has("found")) {
        list.replaceChildren(...buttons(view));
        cue();
      }
      markChosen(view, list);
      const pressed = /** @type {HTMLElement | null} */ (list.querySelector("[aria-pressed=true]"));
      const next = pressed?.dataset["finding"] ?? "";
      // What is pointed at doesn't move away.
      if (pressed && next !== chosen && !list.matches(":hover")) requestAnimationFrame(() => uncover(list, pressed));
      chosen = next;
    },
  };
}

/** Scroll a button of the row out from under the fade. @param {HTMLElement} list @param {HTMLElement} button */
function uncover(list, button) {
  const [row, own] = [list.getBoundingClientRect(), button.getBoundingClientRect()];
  const [before, after] = [row.left + FADE - own.left, own.right - row.right + FADE];
  if (after > 0) list.scrollLeft += Math.min(after, -before);
  else if (before > 0) list.scrollLeft -= before;
}

/** Fade the end of a row that goes on out of sight. @param {HTMLElement} list @returns {() => void} */
function cueMore(list) {
  const cue = () =>
    requestAnimationFrame(() => {
      const {scrollLeft, clientWidth, scrollWidth} = list;
      list.toggleAttribute("data-before", scrollLeft > HIDDEN);
      list.toggleAttribute("data-after", scrollLeft + clientWidth < scrollWidth - HIDDEN);
    });
  list.addEventListener("scroll", cue, {passive: true});
  new ResizeObserver(cue).observe(list);
  return cue;
}

/** @param {FindingsView} view */
function buttons({recording}) {
  const findings = recording.header.findings ?? [];
  const labels = findings.map((one) => labelOf(recording.stream(one.stream), one));
  return findings.map((one, number) =>
    element(
      "button",
      {type: "button", class: "av-finding", "data-testid": "finding", "data-finding": number, "aria-pressed": "false"},
      ...labels[number],
      element("strong", {}, weightText(one.strength)),
      ...quantityOf(one),
      ...effectOn(one),
      element(
        "span",
        {class: "av-quiet", title: `Layer ${one.layer}, head ${one.head}`},
        `${one.layer}\u00b7${one.head}`,
      ),
    ),
  );
}

/** What the number of a finding without a softmax is: neither is a weight. @param {PackedFinding} finding */
function quantityOf({kind, parts}) {
  if (kind === "erased") return [element("span", {}, "erased")];
  const after = parts[parts.findIndex(([, role]) => role === "number") + 1];
  return kind === "carried" && after ? [element("span", {}, after[0].trim())] : [];
}

/** What the head writes for or against the next word, as a triangle and a number, and in words for who can't see it.
 * @param {PackedFinding} finding */
function effectOn({effect, word, parts}) {
  if (effect == null) return [];
  const side = effect < 0 ? "against" : "for";
  const number = `${effect < 0 ? "\u25bc" : "\u25b2"} ${saidOf(parts, "effect")}`;
  return [
    element("span", {class: sideOf(saidOf(parts, "effect")), "aria-hidden": "true"}, number),
    element("span", {class: "av-live"}, `, writes ${side} \u201c${word}\u201d: ${saidOf(parts, "effect")}, in `),
  ];
}

/** @param {{queries: Axis, keys: Axis}} stream @param {PackedFinding} finding */
function labelOf({queries, keys}, {kind, query, key, parts}) {
  // Of what has places, a button says what the sentence says.
  if (queries.place || keys.place || queries.named || keys.named)
    return [element("span", {}, partOf(parts, "query"), " \u2192 ", partOf(parts, "key"))];
  if (kind === "previous") {
    const unit = saidOf(parts, "query").replace(/^each /iu, "");
    return [element("span", {}, `each ${unit} \u2192 the previous ${unit}`)];
  }
  if (JOBS[kind] && !saidOf(parts, "query").startsWith("\u201c"))
    return [element("span", {}, `${saidOf(parts, "query").toLowerCase()} \u2192 ${JOBS[kind]}`)];
  const from = element("bdi", {class: "av-query"}, wordOf(queries, query, parts, "query"));
  return [element("span", {}, from, " \u2192 ", element("bdi", {class: "av-keys"}, wordOf(keys, key, parts, "key")))];
}

/** A token's name; or, where the finding's number is that of a whole word of which it is a piece, the word.
 * @param {Axis} axis @param {number} place @param {PackedFinding["parts"]} parts @param {"query" | "key"} wanted */
function wordOf({names, spellings}, place, parts, wanted) {
  const word = /\u201c(.+)\u201d/su.exec(saidOf(parts, wanted))?.[1];
  return word === undefined || word === setApart(spellings[place].text) ? names[place] : word;
}

/** Who looks, or what is looked at, as a finding's sentence says it.
 * @param {PackedFinding["parts"]} parts @param {"query" | "key"} wanted */
function partOf(parts, wanted) {
  return element(
    "bdi",
    {class: wanted === "query" ? "av-query" : "av-keys"},
    saidOf(parts, wanted).replace(/^the patch at r/i, wanted === "query" ? "R" : "r"),
  );
}

/** @param {PackedFinding["parts"]} parts @param {"query" | "key" | "effect"} wanted */
function saidOf(parts, wanted) {
  return parts.find(([, role]) => role === wanted)?.[0] ?? "";
}

/** Pointing and the focus show a finding, a press keeps it. @param {FindingsView} view @param {HTMLElement} list */
function listenToFindings(view, list) {
  const meant = (/** @type {Event} */ event) => {
    const number = within(event, "[data-finding]")?.dataset["finding"];
    return number === undefined ? null : (view.recording.header.findings?.[Number(number)] ?? null);
  };
  const show = (/** @type {Event} */ event) => {
    const finding = meant(event);
    if (finding) view.preview(previewOf(view, finding));
  };
  const leave = () => view.preview(null);
  list.onpointerover = (event) => (isPointing(event) ? show(event) : undefined);
  list.onpointerleave = leave;
  list.addEventListener("focusin", (event) => {
    if (event.target instanceof Element && event.target.matches(":focus-visible")) show(event);
  });
  list.addEventListener("focusout", leave);
  list.onclick = (event) => {
    const finding = meant(event);
    if (finding) view.take({stream: finding.stream, ...previewOf(view, finding)});
  };
}

/** @param {Pick<FindingsView, "recording">} view @param {PackedFinding} finding @returns {Preview} */
function previewOf({recording}, {stream, layer, head, query, key}) {
  return {stream, layer: layerPlace(recording.stream(stream).layers, layer), head, query, key};
}

/** Which of the findings is chosen, and which one the headline says. @param {FindingsView} view
 * @param {HTMLElement} list */
function markChosen({recording, now, store: {state}}, list) {
  const pointed = state.overQuery !== null || state.overKey !== null;
  const said = pointed || now.pair === null ? undefined : findingAt(recording, state.stream, now.at, now.pair);
  const {stream, layer, head, pairQuery: query, pairKey: key} = state;
  const chosen = query === null || key === null ? undefined : findingAt(recording, stream, {layer, head}, {query, key});
  (recording.header.findings ?? []).forEach((one, number) => {
    list.children[number]?.setAttribute("aria-pressed", String(one === chosen));
    list.children[number]?.toggleAttribute("data-said", one === said);
  });
}
