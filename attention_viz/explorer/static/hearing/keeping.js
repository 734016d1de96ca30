// Which heads keep time with the sound: for each head, the middle of what it hears for each word, as one line.

import {createHearing} from "./hearing.js";
import {element, isPointing, svg, within} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {hasAny} from "../data/store.js";
import {layerNumber, layerPlace} from "../heads/numbers.js";
import {timeAxis} from "./lines.js";
import {framesOf, middleSecond, rowOfWord} from "./speech.js";
import {moveCursor, saidOfWord} from "./words.js";

/** @import {Part} from "../parts/view.js"
 * @import {PackedSound} from "../data/payload.js"
 * @import {SoundView} from "./hearing.js"
 * @import {Frames} from "./speech.js"
 * @import {Said} from "../seen/telling.js" */

/** A head, its layer by its place, how closely it follows the speech, and the second that it hears at each word.
 * @typedef {{layer: number, head: number, follows: number, times: (number | null)[]}} Line */

// Heights in pixels: of the spectrogram, of a word's row, of the axis; and the room for the words.
const KEEPING_ROOM = {sound: 96, row: [26, 36], rows: 310, axis: 20, words: 92};
// Lines of more heads can't be told apart.
const MOST_HEARING = 20;

/** The lines, and all heads by how closely they follow the speech. @param {SoundView} view @param {PackedSound} packed
 * @returns {Part & {said: () => Said[] | null}} */
export function createKeeping(view, packed) {
  const frames = framesOf(view.now.stream.keys, packed.count / packed.rate);
  const place = element("div", {class: "av-hear av-keeping", "data-testid": "keeping"});
  const hearing = createHearing(view, packed, (second) =>
    moveCursor(place, second, frames.seconds, place.clientWidth - KEEPING_ROOM.words),
  );
  const lead = element("p", {class: "av-keeping-lead"}, ...leadOf(packed));
  const tools = element("div", {class: "av-picture-tools"}, hearing.button, lead);
  const list = element("ol", {});
  const aside = element("section", {class: "av-list av-links", "data-testid": "following"}, ...headingOf(), list);
  const hero = element("section", {class: "av-sound", "aria-label": "Audio"}, tools, place, noteOf());
  const node = element("div", {class: "av-keeping-main"}, hero, aside);
  for (const part of [place, list]) listenToLines(view, part);
  return {
    node,
    said: () => saidOfWord(view, packed, frames),
    draw(changed) {
      if (hasAny(changed, "loaded", "theme")) hearing.paint();
      if (hasAny(changed, "loaded", "size")) {
        const lines = headLines(view, packed, frames);
        fillKeeping(view, packed, frames, {place, spectrum: hearing.spectrum, lines});
        list.replaceChildren(...lines.map((one) => followingNode(view, one)));
      }
      // What is pointed at stays the same node: a press on it isn't lost.
      if (hasAny(changed, "loaded", "size", "layer", "head", "preview")) markShown(view, [place, list]);
    },
  };
}

/** @param {PackedSound} packed */
function leadOf({aligning, follows}) {
  const [best] = follows;
  if (!best || !aligning.length) return ["No head follows the speech word by word."];
  const many = aligning.length === 1 ? "One head follows" : `${aligning.length} of ${follows.length} heads follow`;
  return [element("b", {}, `${many} the speech`), `, ${best[0]}\u00b7${best[1]} most closely`];
}

function headingOf() {
  const axes = element("span", {class: "av-axes"}, "0 to 1");
  return [element("header", {}, element("h2", {}, "Follows the speech ", axes))];
}

function noteOf() {
  return element(
    "p",
    {class: "av-quiet"},
    "One line per head: each dot is the middle of its weight in the audio before it writes the word. Orange bars: word " +
      "times. A head scores 1 if each word has its own stretch of sound, in order, and about 0 if it stays in one place.",
  );
}

/** The heads that follow the speech most closely, best first, and what they hear at each word.
 * @param {SoundView} view @param {PackedSound} packed @param {Frames} frames @returns {Line[]} */
function headLines({recording, now: {stream}}, {words, follows}, frames) {
  return follows.slice(0, MOST_HEARING).flatMap(([number, head, measure]) => {
    const layer = layerPlace(stream.layers, number);
    const read = layer < 0 ? null : recording.head({stream: stream.name, layer, head});
    if (read === null) return [];
    const times = words.map((word) =>
      middleSecond(rowOfWord([read], word, frames, false, stream.queries.count), frames),
    );
    return [{layer, head, follows: measure, times}];
  });
}

/** @param {SoundView} view @param {PackedSound} packed @param {Frames} frames
 * @param {{place: HTMLElement, spectrum: HTMLCanvasElement, lines: Line[]}} what */
function fillKeeping({now: {stream}}, {words, aligning}, frames, {place, spectrum, lines}) {
  const width = Math.max(200, (place.clientWidth || 800) - KEEPING_ROOM.words);
  const [least, most] = KEEPING_ROOM.row;
  const pitch = Math.max(least, Math.min(most, Math.floor(KEEPING_ROOM.rows / Math.max(1, words.length))));
  const foot = KEEPING_ROOM.sound + pitch * words.length;
  const height = foot + KEEPING_ROOM.axis;
  const left = (/** @type {number} */ second) => KEEPING_ROOM.words + (second / frames.seconds) * width;
  const top = (/** @type {number} */ word) => KEEPING_ROOM.sound + pitch * (word + 0.5);
  const all = width + KEEPING_ROOM.words;
  const drawing = svg("svg", {width: all, height, viewBox: `0 0 ${all} ${height}`});
  words.forEach(({text, start, end}, word) => {
    drawing.append(svg("path", {class: "av-row-line", d: `M${KEEPING_ROOM.words},${top(word)}H${all}`}));
    const label = svg(
      "text",
      {class: "av-row-word", x: KEEPING_ROOM.words - 10, y: top(word) + 4, "text-anchor": "end"},
      text,
    );
    drawing.append(label);
    if (start === null || end === null) return;
    const spoken = {x: left(start), y: top(word) - 5, width: Math.max(2, left(end) - left(start)), height: 10, rx: 2};
    drawing.append(svg("rect", {class: "av-row-spoken", ...spoken}));
  });
  const isAligning = (/** @type {Line} */ {layer, head}) =>
    aligning.some(([number, one]) => number === layerNumber(stream.layers, layer) && one === head);
  const order = [...lines].sort((one, other) => one.follows - other.follows);
  for (const one of order) {
    const points = one.times.flatMap((second, word) => (second === null ? [] : [[left(second), top(word)]]));
    const d = points.map(([x, y], point) => `${point ? "L" : "M"}${x.toFixed(1)},${y}`).join("");
    const kind = isAligning(one) ? "av-head-line av-head-follows" : "av-head-line";
    const name = `${layerNumber(stream.layers, one.layer)}\u00b7${one.head}`;
    const group = svg("g", {class: kind, "data-layer": one.layer, "data-head": one.head});
    group.append(svg("title", {}, name), svg("path", {class: "av-head-wide", d}), svg("path", {d}));
    group.append(...points.map(([x, y]) => svg("circle", {cx: x, cy: y, r: 4})));
    drawing.append(group);
  }
  drawing.append(...timeAxis(frames.seconds, left, height - 4));
  const cursor = svg("path", {class: "av-cursor", d: `M${KEEPING_ROOM.words},0V${foot}`, visibility: "hidden"});
  drawing.append(cursor);
  Object.assign(spectrum.style, {
    top: "0",
    left: `${KEEPING_ROOM.words}px`,
    width: `${width}px`,
    height: `${KEEPING_ROOM.sound - 8}px`,
  });
  place.style.height = `${height}px`;
  place.replaceChildren(spectrum, drawing);
}

/** Mark the head on the screen among lines and entries. @param {SoundView} view @param {HTMLElement[]} parts */
function markShown({now: {at}}, parts) {
  for (const one of parts.flatMap((part) => [...part.querySelectorAll("li, g[data-head]")])) {
    const shown =
      Number(one.getAttribute("data-layer")) === at.layer && Number(one.getAttribute("data-head")) === at.head;
    one.setAttribute("aria-current", String(shown));
    one.classList.toggle("av-head-shown", shown);
  }
}

/** Pointing at a line or an entry shows its head, a press keeps it. @param {SoundView} view @param {HTMLElement} part */
function listenToLines(view, part) {
  const meant = (/** @type {Event} */ event) => {
    const line = event.target instanceof Element ? event.target.closest("[data-head]") : within(event, "[data-head]");
    if (!line) return null;
    return {layer: Number(line.getAttribute("data-layer")), head: Number(line.getAttribute("data-head"))};
  };
  part.onpointerover = (event) => {
    const head = isPointing(event) ? meant(event) : null;
    if (head) view.preview({...head, query: null, key: null});
  };
  part.onpointerleave = () => view.preview(null);
  part.onclick = (event) => {
    const head = meant(event);
    if (head) view.choose(head);
  };
}

/** @param {SoundView} view @param {Line} line */
function followingNode({now: {stream}}, {layer, head, follows}) {
  const fill = element("span", {class: "av-fill av-accent-fill"});
  fill.style.width = `${100 * Math.max(0, Math.min(1, follows))}%`;
  const name = `${layerNumber(stream.layers, layer)}\u00b7${head}`;
  const place = {"data-layer": layer, "data-head": head};
  return element(
    "li",
    place,
    element("button", {type: "button", class: "av-pair", ...place}, name),
    element("span", {class: "av-track"}, fill),
    element("span", {class: "av-number", title: follows.toPrecision(4)}, weightText(follows)),
  );
}
