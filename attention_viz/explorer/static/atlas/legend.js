// What stands above and below the map: what its colours say, and what its marks stand for.

import {fullOf, isSigned, percent} from "./numbers.js";
import {silenceMarks} from "./silence.js";
import {rgb} from "../data/scale.js";
import {axesOf} from "../heads/cells.js";
import {element} from "../parts/element.js";

/** @import {Atlas, Drawing} from "./grid.js" */

/** What the colours say, and from what to what they go. @param {Atlas} atlas @param {Drawing} drawing */
export function writeTitle({title, legend}, drawing) {
  const {header, message, effects, colours} = drawing;
  const metric = header.metrics.find(({name}) => name === message.metric);
  const words = {
    roles: "Role of each head",
    patterns: "Patterns of all heads",
    colours: `${metric?.label}, by head`,
    silenced: effects.includes(null) || !effects.length ? progressWords(effects) : "Effect of ablating each head",
  };
  title.replaceChildren(`${words[message.view]} `, element("span", {class: "av-axes"}, axesOf()));
  legend.hidden = message.view === "patterns" || (message.view === "silenced" && fullOf(drawing) <= 1e-9);
  const roles = message.view === "roles";
  const signed = isSigned(drawing);
  const shown = roles ? [colours.background, colours.roles[0]] : signed ? colours.differences : colours.ramp;
  const bar = element("div", {class: "av-bar"});
  bar.style.background = `linear-gradient(to right, ${shown.map(rgb).join(", ")})`;
  const full = fullOf(drawing);
  const most = message.view === "silenced" ? percent(full) : String(Number(full.toPrecision(3)));
  const unit = {roles: "", patterns: "", colours: metric?.unit, silenced: "root scale"}[message.view];
  const ends = roles ? ["threshold", "strongest"] : [signed ? `\u2212${most}` : "0", most];
  const ticks = ends.map((end) => element("span", {}, end));
  ticks.splice(1, 0, element("span", {class: "av-unit"}, unit));
  legend.replaceChildren(bar, element("div", {class: "av-ends"}, ...ticks));
}

/** How many heads were tried, while the model runs. @param {(number | null)[]} effects */
function progressWords(effects) {
  const done = effects.filter((effect) => effect !== null).length;
  return `Ablating each head in turn${effects.length ? `: ${done} of ${effects.length}` : " \u2026"}`;
}

/** What each mark on the map stands for, of those that are there. @param {Atlas} atlas */
export function writeMarks({marks, message}) {
  const silence = silenceMarks();
  const shown = [{mark: "chosen", words: "chosen"}];
  if (message?.linking.length) shown.push({mark: "linking", words: message.links});
  if (silence) shown.push({mark: "struck", words: silence.struck});
  if (silence?.moved) shown.push({mark: "moved", words: silence.moved});
  marks.replaceChildren(
    ...shown.map(({mark, words}) =>
      element("span", {}, element("i", {class: `av-mark-${mark}`, "aria-hidden": "true"}), element("bdi", {}, words)),
    ),
  );
}
