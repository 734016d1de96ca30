// What the matrix is drawn from: its cells, or of a long text blocks of them; the switch between the largest and the
// mean of each block, and the note that says which.

import {segments} from "./controls.js";
import {element} from "./element.js";
import {ComputedHead, MOST_COMPUTED} from "../data/computed.js";

/**
 * @import {View, Writes} from "./view.js"
 * @import {Places} from "../data/head.js"
 */

/** @typedef {"largest" | "mean"} BlockKind */

/**
 * What the matrix is painted from.
 * @typedef {object} Drawn
 * @property {(width: number, height: number) => Uint16Array} sample  the number under each pixel
 * @property {ArrayLike<number>} values  the weight that each number stands for
 * @property {boolean} relative  whether the deepest colour is the largest weight that is drawn
 */

/** @typedef {Pick<View, "now" | "recording"> & Writes<"blocks">} BlockView */

/** @type {readonly {value: BlockKind, label: string, title: string}[]} */
const KINDS = [
  {value: "largest", label: "Largest", title: "Each block has the colour of its largest weight: no lone link is lost"},
  {value: "mean", label: "Mean", title: "Each block has the colour of the mean of its weights: where many are small"},
];

/**
 * The switch and the note below the matrix of a long text; in a short one there is neither.
 * @param {BlockView} view
 */
export function createBlocks(view) {
  const {store, recording} = view;
  const kinds = segments("Each block", KINDS, (blocks) => store.set({blocks}));
  const note = element("p", {"data-testid": "explorer-blocks"});
  const node = element("div", {class: "av-blocks", hidden: !recording.header.long}, kinds.node, note);
  return {
    node,
    /**
     * Say what was drawn, and how weak the palest and how strong the deepest colour is.
     * @param {Places} rows
     * @param {Places} columns
     * @param {number} maximum
     */
    tell(rows, columns, maximum) {
      kinds.select(store.state.blocks);
      note.textContent = wording(view, rows, columns, maximum);
    },
  };
}

/**
 * What some rows and columns of the head on the screen are painted from; null before there is anything.
 * @param {Pick<View, "store" | "now">} view
 * @param {Places} rows
 * @param {Places} columns
 * @returns {Drawn | null}
 */
export function drawnOf({store, now: {head, picture}}, rows, columns) {
  if (picture === null) return null;
  const means = store.state.blocks === "mean" && inBlocks(head, rows, columns) ? head.means : null;
  const from = means ?? picture;
  return {
    sample: (width, height) => from.sample(rows, columns, width, height),
    values: from.values,
    relative: means !== null,
  };
}

/**
 * Whether so many cells of a head are drawn in blocks.
 * @param {View["now"]["head"]} head
 * @param {Places} rows
 * @param {Places} columns
 * @returns {head is ComputedHead}
 */
function inBlocks(head, rows, columns) {
  return head instanceof ComputedHead && rows.length * columns.length > MOST_COMPUTED;
}

/**
 * @param {BlockView} view
 * @param {Places} rows
 * @param {Places} columns
 * @param {number} maximum
 */
function wording({store, recording, now: {head}}, rows, columns, maximum) {
  if (!(head instanceof ComputedHead)) return "";
  const error = "weights" in head.terms ? recording.header.error : 1e-5;
  const single = `by itself, exact to ${error.toFixed(5)}`;
  if (!inBlocks(head, rows, columns)) return `Each weight ${single}`;
  const {blocks, scale} = store.state;
  const size = head.map.size.join(" \u00d7 ");
  if (blocks === "largest") return `The largest of each ${size} weights; zoom in for each ${single}`;
  const palest = scale === "logarithmic" ? "the palest a thousandth of it" : "the others in proportion";
  return (
    `The mean of each ${size} weights, blocked ones left out; the deepest colour is the largest mean, ` +
    `${Number(maximum.toPrecision(2))}, ${palest}; zoom in for each weight ${single}`
  );
}
