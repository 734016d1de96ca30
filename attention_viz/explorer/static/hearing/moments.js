// A sound that looks at itself: the spectrogram, a chosen moment of it, and what that moment listens to.

import {arrowStep, element, svg} from "../parts/element.js";
import {segments} from "../parts/controls.js";
import {hasAny} from "../data/store.js";
import {weightText} from "../data/scale.js";
import {createHearing} from "./hearing.js";
import {curveOf, timeAxis} from "./lines.js";
import {SHOWN_ROW, lineOf} from "../seen/patches.js";
import {framesOf, tellMoment} from "./speech.js";
import {moveCursor} from "./words.js";

/** @import {Part} from "../parts/view.js"
 * @import {PackedSound} from "../data/payload.js"
 * @import {SoundView} from "./hearing.js"
 * @import {Frames} from "./speech.js"
 * @import {Said} from "../seen/telling.js" */

const HIGH = {sound: 160, curve: 110, axis: 20};

/** @param {Pick<SoundView, "store" | "now">} view @param {Frames} frames */
function chosenMoment({store: {state}, now}, {count}) {
  return Math.min(count - 1, state.overQuery ?? (state.direction === "to" ? now.pair?.key : now.pair?.query) ?? 0);
}

/** @param {SoundView} view @param {Frames} frames */
function momentLine(view, frames) {
  const {head} = view.now;
  return head && lineOf(head, chosenMoment(view, frames), frames.count, view.store.state.direction);
}

/** @param {SoundView} view @param {PackedSound} packed @returns {Part & {said: () => Said[] | null}} */
export function createMoments(view, packed) {
  const frames = framesOf(view.now.stream.keys, packed.count / packed.rate);
  const place = element("div", {class: "av-hear", tabindex: "0", role: "img", "data-testid": "sound"});
  const hearing = createHearing(view, packed, (second) => moveCursor(place, second, frames.seconds));
  const direction = segments(
    "",
    [
      {value: "from", label: "attends to", title: "Weights from the chosen moment: its row"},
      {value: "to", label: "attended by", title: "Weights to the chosen moment: its column"},
    ],
    (value) => view.store.set({direction: value === "to" ? "to" : "from"}),
  );
  const tools = element(
    "div",
    {class: "av-picture-tools"},
    hearing.button,
    direction.node,
    element("span", {class: "av-quiet"}, "point at a moment or use the arrow keys"),
  );
  const node = element("section", {class: "av-sound", "aria-label": "Audio"}, tools, place);
  listenToMoments(view, place, frames);
  const said = () => {
    const line = momentLine(view, frames);
    return line && tellMoment(line, chosenMoment(view, frames), frames, view.store.state.direction === "to");
  };
  return {
    node,
    said,
    draw(changed) {
      if (hasAny(changed, "loaded", "theme")) hearing.paint();
      if (!hasAny(changed, ...SHOWN_ROW, "theme", "size", "direction")) return;
      direction.select(view.store.state.direction);
      place.setAttribute("aria-label", (said() ?? []).map(([text]) => text).join("") || "Audio");
      fillMoments(view, place, hearing.spectrum, frames);
    },
  };
}

/** @param {SoundView} view @param {HTMLElement} place @param {HTMLCanvasElement} spectrum @param {Frames} frames */
function fillMoments(view, place, spectrum, frames) {
  const width = place.clientWidth || 600;
  const left = (/** @type {number} */ second) => (second / frames.seconds) * width;
  const [foot, height] = [HIGH.sound + HIGH.curve, HIGH.sound + HIGH.curve + HIGH.axis];
  const drawing = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"});
  const line = momentLine(view, frames);
  const chosen = chosenMoment(view, frames);
  if (line) {
    const most = line.reduce((so, weight) => Math.max(so, weight), 0);
    const curve = curveOf(line, most, {
      left: (frame) => Math.min(width, left(frame * frames.step)),
      foot: foot - 4,
      height: HIGH.curve - 22,
    });
    drawing.append(svg("path", {class: "av-curve", d: curve}));
    drawing.append(
      svg(
        "text",
        {class: "av-time", x: width, y: HIGH.sound + 14, "text-anchor": "end"},
        `largest weight of a frame: ${weightText(most)}`,
      ),
    );
  }
  const role = view.store.state.direction === "to" ? "av-moment av-moment-key" : "av-moment";
  drawing.append(
    svg("rect", {
      class: role,
      x: left(chosen * frames.step),
      y: 0,
      width: Math.max(3, left(frames.step)),
      height: foot - 4,
    }),
  );
  drawing.append(...timeAxis(frames.seconds, left, height - 4));
  drawing.append(svg("path", {class: "av-cursor", d: `M0,0V${foot}`, visibility: "hidden"}));
  Object.assign(spectrum.style, {top: "0", height: `${HIGH.sound}px`});
  place.style.height = `${height}px`;
  place.replaceChildren(spectrum, drawing);
}

/** @param {SoundView} view @param {HTMLElement} place @param {Frames} frames */
function listenToMoments(view, place, frames) {
  const at = (/** @type {MouseEvent} */ {clientX}) => {
    const {left, width} = place.getBoundingClientRect();
    return Math.min(
      frames.count - 1,
      Math.max(0, Math.floor((((clientX - left) / width) * frames.seconds) / frames.step)),
    );
  };
  const pin = (/** @type {number} */ moment) => {
    view.pin({query: moment, key: moment}, {pair: true});
    view.point({query: null, key: null});
  };
  place.onpointermove = (event) => {
    if (event.pointerType === "mouse") view.point({query: at(event), key: null});
  };
  place.onpointerleave = () => view.point({query: null, key: null});
  place.onclick = (event) => pin(at(event));
  place.onkeydown = (event) => {
    const [, by] = arrowStep(event.key) ?? [0, 0];
    if (event.key === "Enter") pin(chosenMoment(view, frames));
    if (!by) return;
    event.preventDefault();
    view.point({query: Math.min(frames.count - 1, Math.max(0, chosenMoment(view, frames) + by)), key: null});
  };
}
