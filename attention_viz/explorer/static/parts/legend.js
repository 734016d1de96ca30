// What the colours and marks mean: always in sight.

import {element} from "./element.js";
import {rampOf} from "./style.js";
import {MixedHead} from "../data/mixing.js";
import {SCALES, rgb} from "../data/scale.js";
import {MARKS} from "../data/spelling.js";
import {hasAny} from "../data/store.js";
import {ORIGINS, ORIGIN_NAMES} from "../data/tokens.js";

/** @import {Part, View} from "./view.js"
 * @import {Recording, Stream} from "../data/recording.js"
 * @import {Places} from "../data/head.js" */

/** The bar of colours with its range, the hatched sample, and the marks of tokens.
 * @param {Pick<View, "store" | "recording" | "now" | "colours">} view @returns {Part} */
export function createLegend(view) {
  const bar = element("div", {class: "av-bar"});
  const ticks = element("div", {class: "av-ticks"});
  const scale = element("div", {class: "av-scale", role: "img"}, bar, ticks);
  const blocked = element("span", {class: "av-key-entry"}, element("span", {class: "av-hatch"}), "blocked");
  const left = element("span", {class: "av-key-entry"}, element("span", {class: "av-dot"}), "available, not picked");
  const node = element(
    "div",
    {class: "av-legend", "data-testid": "explorer-legend"},
    element("span", {class: "av-key-entry av-sight-entry"}, element("span", {class: "av-dashed"}), "in sight above"),
    scale,
    ...originEntries(view.recording),
  );
  let drawnFor = -1;
  return {
    node,
    draw(changed) {
      // Another head has the same colours, unless they begin anew with each head's largest weight.
      const {maximum} = view.now;
      if (
        maximum === drawnFor &&
        !hasAny(changed, "stream", "layer", "head", "arrived", "single", "scale", "theme", "loaded")
      )
        return;
      drawnFor = maximum;
      const {scale: name} = view.now;
      if (view.now.stream.layers.some((layer) => layer.blocked !== null)) node.append(blocked);
      else blocked.remove();
      if (view.now.stream.layers.some((layer) => layer.left)) node.append(left);
      else left.remove();
      const entries = SCALES[name].ticks(maximum);
      bar.style.background = `linear-gradient(to right, ${rampOf(view.colours, name).map(rgb).join(", ")})`;
      ticks.replaceChildren(
        ...entries.map(([place, text]) => {
          const tick = element("span", {}, text);
          tick.style.left = `${place * 100}%`;
          return tick;
        }),
      );
      scale.setAttribute(
        "aria-label",
        `Colours of the weights, from ${entries[0][1]} to ${entries[entries.length - 1][1]}`,
      );
    },
  };
}

/** A sample of the line below each kind of token that is told apart. @param {Recording} recording */
function originEntries({streams}) {
  const there = new Set(streams.flatMap(({queries, keys}) => [...queries.origins, ...keys.origins]));
  return ORIGIN_NAMES.filter((origin) => there.has(origin)).map((origin) =>
    element(
      "span",
      {class: "av-key-entry"},
      element("span", {class: `av-sample av-${origin}`, "aria-hidden": "true"}, "\u2003\u2003"),
      ORIGINS[origin],
    ),
  );
}

/** The lines below: marks in the tokens, sums while tokens are hidden, and how far the drawing is from the trace.
 * @param {Pick<View, "store" | "recording" | "now">} view @returns {Part & {sums: HTMLElement}} */
export function createNotes(view) {
  const {header, streams} = view.recording;
  const axes = streams.flatMap(({queries, keys}) => [queries, keys]);
  const uses = (/** @type {string} */ mark) =>
    axes.some(({spellings}) => spellings.some((one) => one.mark === mark || one.text.endsWith(mark)));
  const marks = [
    uses(MARKS.space) ? `${MARKS.space} a space before` : null,
    uses(MARKS.continues) ? `${MARKS.continues} continues a word` : null,
    axes.some(({repeats}) => repeats) ? "small number: which of several equal tokens" : null,
    header.long || streams.every(({signed}) => signed)
      ? null
      : `rounded here by at most ${header.error.toFixed(5)}; downloads are exact`,
  ];
  const sums = element("p", {class: "av-warning", hidden: true, "data-testid": "explorer-sums"});
  const line = element("p", {});
  return {
    node: element("div", {class: "av-notes"}, line),
    sums,
    draw(changed) {
      if (!hasAny(changed, "stream", "layer", "head", "hideSpecial", "loaded")) return;
      const {head, rows, columns, stream} = view.now;
      const dimmed = dimmedFor(stream, rows, columns);
      line.textContent = [dimmed, ...marks, ...longNotes(view)].filter(Boolean).join(" \u2002 ");
      sums.hidden = true;
      if (head === null || head instanceof MixedHead || columns.length === stream.keys.count) return;
      const all = Array.from(rows, (query) => head.sum(query, columns));
      const [least, most] = [Math.min(...all), Math.max(...all)].map((sum) => sum.toFixed(3));
      sums.hidden = least === "1.000";
      sums.textContent = `Rows no longer sum to 1: here from ${least} to ${most}`;
    },
  };
}

/** How much of a long text there is: from how many of its rows its small pictures are, and of which heads the numbers.
 * @param {Pick<View, "store" | "recording" | "now">} view */
function longNotes({store, recording, now: {stream}}) {
  const tokens = stream.queries.count;
  const small = stream.layers.find((layer) => layer.small)?.small;
  if (small) return [`thumbnails: ${someRows(small.side[0], tokens)}`];
  if (!recording.header.long || stream.signed) return [];
  const {findings} = recording.header;
  return [
    `thumbnails: ${someRows(stream.sampled, tokens)}`,
    stream.searched && findings?.length ? `findings: ${someRows(stream.searched, tokens)}` : null,
    recording.ask || recording.has(store.state) ? null : notHere(stream),
  ];
}

/** @param {number} some @param {number} all */
function someRows(some, all) {
  return some < all ? `${some.toLocaleString("en")} of ${all.toLocaleString("en")} rows` : "all rows";
}

/** What a file has no numbers of. @param {Stream} stream */
function notHere({layers}) {
  const there = layers.flatMap(({terms, number}, layer) => (Object.keys(terms).length ? [number ?? layer] : []));
  return `this file has full weights for layer ${there.join(", ")} only; this head is a thumbnail`;
}

/** Why tokens are dimmed, as long as such tokens are on the screen.
 * @param {Stream} stream @param {Places} rows @param {Places} columns */
function dimmedFor({queries, keys}, rows, columns) {
  const shown = rows.some((place) => queries.dimmed[place]) || columns.some((place) => keys.dimmed[place]);
  const reasons = [
    queries.special || keys.special ? "added by the tokenizer" : null,
    queries.padding || keys.padding ? "padding" : null,
  ];
  return shown ? `dimmed: ${reasons.filter(Boolean).join(", or ")}` : null;
}
