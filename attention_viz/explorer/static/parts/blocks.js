// What the matrix is drawn from: its cells, or of a long text blocks of them; the switch between the largest and the
// mean of each block, and the note that says which.

import {segments} from "./controls.js";
import {element} from "./element.js";
import {HeadMap} from "../data/blockmap.js";
import {ComputedHead, MOST_COMPUTED} from "../data/computed.js";
import {Part, WithoutHidden} from "../data/part.js";

/** @import {View, Writes} from "./view.js"
 * @import {BlockMap} from "../data/blockmap.js"
 * @import {Places} from "../data/head.js" */

/** @typedef {"largest" | "mean"} BlockKind */

/** What the matrix is painted from.
 * @typedef {object} Drawn
 * @property {(width: number, height: number) => Uint16Array} sample  the number under each pixel
 * @property {ArrayLike<number>} values  the weight that each number stands for
 * @property {boolean} relative  whether the deepest colour is the largest weight that is drawn */

/** @typedef {Pick<View, "now" | "recording"> & Writes<"blocks">} BlockView */

/** Blocks that are being computed for what is on the screen, a step at a time.
 * @typedef {object} Work
 * @property {Part | WithoutHidden | null} blocks  null where those of the whole are drawn
 * @property {Iterator<void> | null} steps
 * @property {number} timer
 * @property {number} shown  when they were last painted */

/** @type {readonly {value: BlockKind, label: string, title: string}[]} */
const KINDS = [
  {value: "largest", label: "Largest", title: "Each block shows its largest weight, so no single link is lost"},
  {value: "mean", label: "Mean", title: "Each block shows the mean of its weights, which reveals many small ones"},
];
// For how long blocks are computed at a time, how long after the last move that begins, and how often they are painted
// meanwhile; in milliseconds.
const [SLICE, REST, AGAIN] = [10, 80, 200];

/** The switch and the note below the matrix of a long text, in a short one there is neither; and what the matrix is
 * painted from. `repaint` is called when blocks have been computed.
 * @param {BlockView} view @param {() => void} repaint */
export function createBlocks(view, repaint) {
  const {store, recording} = view;
  const kinds = segments("Each block", KINDS, (blocks) => store.set({blocks}));
  const note = element("p", {"data-testid": "explorer-blocks"});
  const node = element("div", {class: "av-blocks", hidden: !recording.header.long}, kinds.node, note);
  /** @type {Work} */
  const work = {blocks: null, steps: null, timer: 0, shown: 0};
  return {
    node,
    /** What some rows and columns of the head on the screen are painted from; null before there is anything.
     * @param {Places} rows @param {Places} columns @returns {Drawn | null} */
    drawn(rows, columns) {
      const {head, picture} = view.now;
      if (!inBlocks(head, rows, columns)) {
        work.blocks = null;
        if (picture === null) return null;
        if (picture instanceof HeadMap && store.state.blocks === "mean") {
          const {means} = picture;
          return {sample: means.sample.bind(means, rows, columns), values: means.values, relative: true};
        }
        const sample = picture.sample.bind(picture, rows, columns);
        return {sample, values: picture.values, relative: false};
      }
      const relative = store.state.blocks === "mean";
      const whole = relative ? head.means : head.map;
      beginWith(work, whole, rows, columns, () => anew(view, head, whole, rows, columns));
      goOn(work, node, repaint);
      const {blocks} = work;
      const sample = blocks ? blocks.sample.bind(blocks) : whole.sample.bind(whole, rows, columns);
      return {sample, values: whole.values, relative};
    },
    /** Say what was drawn, and how much the deepest colour stands for.
     * @param {Places} rows @param {Places} columns @param {number} deepest */
    tell(rows, columns, deepest) {
      const {head} = view.now;
      // Nothing moves while one zooms: where single weights are on the screen there is only nothing to choose.
      kinds.node.hidden = head instanceof ComputedHead && head.queries * head.keys <= MOST_COMPUTED;
      kinds.node.disabled = !inBlocks(head, rows, columns) && !(view.now.picture instanceof HeadMap);
      kinds.select(store.state.blocks);
      note.textContent = wording(view, work.blocks, rows, columns, deepest);
    },
  };
}

/** Whether so many cells of a head are drawn in blocks.
 * @param {View["now"]["head"]} head @param {Places} rows @param {Places} columns @returns {head is ComputedHead} */
function inBlocks(head, rows, columns) {
  return head instanceof ComputedHead && rows.length * columns.length > MOST_COMPUTED;
}

/** Begin with other blocks, unless these are on the screen already.
 * @param {Work} work @param {BlockMap} whole @param {Places} rows @param {Places} columns
 * @param {() => Part | WithoutHidden | null} begin */
function beginWith(work, whole, rows, columns, begin) {
  const {blocks} = work;
  if (blocks?.whole === whole && isSame(blocks.rows, rows) && isSame(blocks.columns, columns)) return;
  clearTimeout(work.timer);
  work.timer = 0;
  work.blocks = begin();
  work.steps = work.blocks?.steps() ?? null;
}

/**
 * The blocks that the whole's don't stand for: of a part, or where tokens are hidden; null where they do.
 *
 * Of weights that came in steps faint means are off: those of the whole, which were made of the weights themselves, stay.
 * @param {BlockView} view
 * @param {ComputedHead} head
 * @param {BlockMap} whole
 * @param {Places} rows
 * @param {Places} columns
 */
function anew({now}, head, whole, rows, columns) {
  if (rows.length === head.queries && columns.length === head.keys) return null;
  if (whole === head.means && !head.isComputed) return null;
  const all = rows.length === now.rows.length && columns.length === now.columns.length;
  return new (all ? WithoutHidden : Part)(head, whole, rows, columns);
}

/** Compute what is missing, in slices between which the page draws and answers.
 * @param {Work} work @param {HTMLElement} node @param {() => void} repaint */
function goOn(work, node, repaint) {
  if (!work.blocks || work.blocks.done || work.timer) return;
  work.shown = performance.now();
  work.timer = setTimeout(slice, REST);
  function slice() {
    work.timer = 0;
    // An element that was taken off the page goes on when it is drawn again.
    if (!work.blocks || !node.isConnected) return;
    const until = performance.now() + SLICE;
    while (performance.now() < until && !work.steps?.next().done);
    if (!work.blocks.done) work.timer = setTimeout(slice, 0);
    if (!work.blocks.done && until - work.shown < AGAIN) return;
    work.shown = until;
    repaint();
  }
}

/** @param {Places} one @param {Places} other */
function isSame(one, other) {
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length;
}

/** @param {BlockView} view @param {Work["blocks"]} blocks @param {Places} rows @param {Places} columns
 * @param {number} deepest */
function wording({store, now}, blocks, rows, columns, deepest) {
  const {head, picture} = now;
  if (picture instanceof HeadMap) {
    const kind = store.state.blocks === "mean" ? "mean" : "largest";
    return `The ${kind} of each ${picture.map.size.join(" \u00d7 ")} weights; loading the single weights \u2026`;
  }
  if (!(head instanceof ComputedHead)) return "";
  const single = "weight exact to 0.00001";
  if (!inBlocks(head, rows, columns)) return `Each ${single}`;
  const size = (blocks ?? head.map).size.join(" \u00d7 ");
  const hides = now.rows.length < head.queries || now.columns.length < head.keys;
  const left = [hides && blocks ? "hidden" : null, store.state.blocks === "mean" ? "blocked" : null].filter(Boolean);
  const without = left.length ? `, ${left.join(" and ")} ones left out` : "";
  const busy = blocks && !blocks.done ? " (being computed)" : "";
  if (store.state.blocks === "largest")
    return `The largest of each ${size} weights${without}${busy}; zoom in for each ${single}`;
  const palest =
    store.state.scale === "logarithmic" ? "the palest is a thousandth of it" : "the others are in proportion";
  return (
    `The mean of each ${size} weights${without}${busy}; the deepest colour is the largest mean, ` +
    `${Number(deepest.toPrecision(2))}, ${palest}; zoom in for each ${single}`
  );
}
