// The words that are said, above; the spectrogram with time, below; and a ribbon from each word to what it hears.

import {element, focused, isPointing, within, svg} from "../parts/element.js";
import {segments} from "../parts/controls.js";
import {hasAny} from "../data/store.js";
import {placed} from "../heads/numbers.js";
import {weightText} from "../data/scale.js";
import {createHearing} from "./hearing.js";
import {curveOf, timeAxis} from "./lines.js";
import {SHOWN_ROW} from "../seen/patches.js";
import {TALL, gradient, ribbon, seatsOf, wordNode} from "./ribbons.js";
import {framesOf, litAt, rowOfWord, spanOf, tellWord} from "./speech.js";

/** @import {Part} from "../parts/view.js"
 * @import {PackedSound} from "../data/payload.js"
 * @import {SoundView} from "./hearing.js"
 * @import {Said} from "../seen/telling.js"
 * @import {Frames, Word} from "./speech.js" */

/** The heads whose rows are shown: the one on the screen, or those that align.
 * @param {Pick<SoundView, "store" | "recording" | "now">} view @param {PackedSound} packed */
export function hearingHeads({store: {state}, recording, now}, {aligning}) {
  if (!state.aligned) return now.head ? [now.head] : [];
  const {name} = now.stream;
  return aligning.flatMap(([layer, head]) => recording.head(placed(recording, {stream: name, layer, head})) ?? []);
}

/** The word that is looked at: pointed at, else chosen, else the one that the head is told by.
 * @param {Pick<SoundView, "store" | "now">} view @param {PackedSound} packed */
export function chosenWord({store: {state}, now}, {words}) {
  const row = state.overQuery ?? now.pair?.query ?? 0;
  return Math.max(
    0,
    words.findIndex(({rows}) => rows.includes(row)),
  );
}

/** What the chosen word hears, in a sentence.
 * @param {SoundView} view @param {PackedSound} packed @param {Frames} frames */
export function saidOfWord(view, packed, frames) {
  const heads = hearingHeads(view, packed);
  const word = packed.words[chosenWord(view, packed)];
  if (!heads.length || !word) return null;
  const {after} = view.store.state;
  return tellWord(word, rowOfWord(heads, word, frames, after, view.now.stream.queries.count), frames, after);
}

/** @param {SoundView} view @param {PackedSound} packed @returns {Part & {said: () => Said[] | null}} */
export function createWords(view, packed) {
  const frames = framesOf(view.now.stream.keys, packed.count / packed.rate);
  const place = element("div", {class: "av-hear", "data-testid": "sound"});
  let lit = -1;
  const hearing = createHearing(view, packed, (second) => {
    const before = lit;
    lit = second === null ? -1 : litWord(view, packed, frames, second, lit);
    if (before !== lit) drawHero();
    moveCursor(place, second, frames.seconds);
  });
  const {tools, select} = createWordTools(view, packed, hearing.button);
  const node = element("section", {class: "av-sound", "aria-label": "Audio"}, tools, place);
  listenToWords(view, place, packed, hearing, frames);
  const drawHero = () => fillHero({view, packed, frames, place, spectrum: hearing.spectrum, lit});
  return {
    node,
    draw(changed) {
      if (hasAny(changed, "loaded", "theme")) hearing.paint();
      if (!hasAny(changed, ...SHOWN_ROW, "theme", "size", "after", "aligned")) return;
      select();
      drawHero();
    },
    said: () => saidOfWord(view, packed, frames),
  };
}

/** @param {SoundView} view @param {PackedSound} packed @param {HTMLElement} button */
function createWordTools(view, packed, button) {
  const {store} = view;
  const rows = segments(
    "",
    [
      {value: "about", label: "before the word", title: "Row of the step that predicts the word"},
      {value: "read", label: "after the word", title: "Row of the step that reads the word"},
    ],
    (value) => store.set({after: value === "read"}),
  );
  const heads = packed.aligning.length
    ? segments(
        "",
        [
          {value: "one", label: "this head", title: "The head on the screen"},
          {
            value: "mean",
            label: `mean of ${packed.aligning.map(([layer, head]) => `${layer}\u00b7${head}`).join(", ")}`,
            title: "The alignment heads, which give the word times",
          },
        ],
        (value) => store.set({aligned: value === "mean"}),
      )
    : null;
  const hint = element("span", {class: "av-quiet"}, "ribbon: the middle 80\u00a0% of a row\u2019s weight in the audio");
  const tools = element("div", {class: "av-picture-tools"}, button, rows.node, heads?.node ?? null, hint);
  const select = () => {
    rows.select(store.state.after ? "read" : "about");
    heads?.select(store.state.aligned ? "mean" : "one");
  };
  return {tools, select};
}

/** @param {SoundView} view @param {PackedSound} packed @param {Frames} frames @param {number} second
 * @param {number} before */
function litWord(view, packed, frames, second, before) {
  const found = litAt(linesOf(view, packed, frames), second, frames.step);
  return found < 0 ? before : found;
}

/**
 * @param {{view: SoundView, packed: PackedSound, frames: Frames, place: HTMLElement, spectrum: HTMLCanvasElement, lit: number}} what
 */
function fillHero({view, packed, frames, place, spectrum, lit}) {
  const width = place.clientWidth || 600;
  const heads = hearingHeads(view, packed);
  const chosen = lit >= 0 ? lit : chosenWord(view, packed);
  const lines = linesOf(view, packed, frames);
  const left = (/** @type {number} */ second) => (second / frames.seconds) * width;
  const [top, bottom] = [TALL.words + TALL.ribbons, TALL.words + TALL.ribbons + TALL.sound];
  const height = bottom + TALL.curve + TALL.axis;
  const seats = seatsOf(
    packed.words.map(({text}) => text),
    width,
  );
  const drawing = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"});
  drawing.append(gradient());
  lines.forEach((line, at) => {
    const [from, to] = spanOf(line, frames).map(left);
    if (heads.length) drawing.append(ribbon(seats[at], [from, Math.max(from + 2, to)], at === chosen));
    if (at !== chosen || !heads.length) return;
    drawing.append(...chosenMarks(packed.words[at], line, frames, {width, left, span: [from, to]}));
  });
  drawing.append(...timeAxis(frames.seconds, left, height - 4));
  drawing.append(svg("path", {class: "av-cursor", d: `M0,${TALL.words}V${bottom + TALL.curve}`, visibility: "hidden"}));
  Object.assign(spectrum.style, {top: `${top}px`, height: `${TALL.sound}px`});
  const reached = focused(place);
  const word = reached instanceof HTMLElement && place.contains(reached) ? reached.dataset["word"] : undefined;
  place.style.height = `${height}px`;
  place.replaceChildren(
    spectrum,
    drawing,
    ...packed.words.map(({text}, at) => wordNode(text, at, seats[at], at === chosen)),
  );
  const again = word === undefined ? null : place.querySelector(`[data-word="${word}"]`);
  if (again instanceof HTMLElement) again.focus({preventScroll: true});
}

/** Each word's row of weights over the frames.
 * @param {SoundView} view @param {PackedSound} packed @param {Frames} frames */
function linesOf(view, packed, frames) {
  const heads = hearingHeads(view, packed);
  const count = view.now.stream.queries.count;
  return packed.words.map((word) => rowOfWord(heads, word, frames, view.store.state.after, count));
}

/** What the chosen word hears: its time over the spectrogram, its row as a curve, and when it was spoken.
 * @param {Word} word @param {Float32Array} line @param {Frames} frames
 * @param {{width: number, left: (second: number) => number, span: number[]}} place */
function chosenMarks({start, end}, line, frames, {width, left, span: [from, to]}) {
  const top = TALL.words + TALL.ribbons;
  const bottom = top + TALL.sound;
  const most = line.reduce((so, weight) => Math.max(so, weight), 0);
  const across = (/** @type {number} */ frame) => Math.min(width, left(frame * frames.step));
  const curve = curveOf(line, most, {left: across, foot: bottom + TALL.curve - 4, height: TALL.curve - 8});
  const told = `largest weight of a frame: ${weightText(most)}`;
  const marks = [
    svg("rect", {class: "av-heard", x: from, y: top, width: Math.max(2, to - from), height: TALL.sound}),
    svg("path", {class: "av-curve", d: curve}),
    svg("text", {class: "av-time", x: width, y: bottom + 12, "text-anchor": "end"}, told),
  ];
  if (start === null || end === null) return marks;
  const spoken = {x: left(start), y: bottom + TALL.curve - 4, width: Math.max(2, left(end - start)), height: 4};
  return [...marks, svg("rect", {class: "av-spoken", ...spoken})];
}

/** @param {HTMLElement} place @param {number | null} second @param {number} seconds @param {number} [width] */
export function moveCursor(place, second, seconds, width = place.clientWidth) {
  const cursor = place.querySelector(".av-cursor");
  if (!cursor) return;
  cursor.setAttribute("visibility", second === null ? "hidden" : "visible");
  cursor.setAttribute("transform", `translate(${(Math.min(second ?? 0, seconds) / seconds) * width},0)`);
}

/** @param {SoundView} view @param {HTMLElement} place @param {PackedSound} packed
 * @param {import("./hearing.js").Hearing} hearing @param {Frames} frames */
function listenToWords(view, place, packed, hearing, frames) {
  const wordAt = (/** @type {Event} */ event) => {
    const number = within(event, "[data-word]")?.dataset["word"];
    return number === undefined ? null : Number(number);
  };
  place.onpointerover = (event) => {
    const word = isPointing(event) ? wordAt(event) : null;
    if (word !== null) view.point({query: packed.words[word].rows[0], key: null});
  };
  place.onpointerleave = () => view.point({query: null, key: null});
  place.onclick = (event) => {
    const word = wordAt(event);
    if (word === null) {
      const {left, top, width} = place.getBoundingClientRect();
      if (event.clientY - top > TALL.words + TALL.ribbons)
        hearing.play(((event.clientX - left) / width) * frames.seconds);
      return;
    }
    pinWord(view, packed, word, frames);
    const {start, end} = packed.words[word];
    if (start !== null && end !== null) hearing.play(start, end);
  };
}

/** Keep a word with the frame that it hears most, and tell the host.
 * @param {SoundView} view @param {PackedSound} packed @param {number} word @param {Frames} frames */
export function pinWord(view, packed, word, frames) {
  const heads = hearingHeads(view, packed);
  const line = rowOfWord(heads, packed.words[word], frames, view.store.state.after, view.now.stream.queries.count);
  view.pin({query: packed.words[word].rows[0], key: line.indexOf(Math.max(...line))}, {pair: true});
  view.point({query: null, key: null});
}
