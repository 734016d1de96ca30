// What the explorer's elements share: what the reader has chosen, what is on the screen, and what they may do.

import {element} from "./element.js";
import {createTooltip} from "./tooltip.js";
import {hatchingOf, readStyle} from "./style.js";
import {withoutWeight} from "../data/head.js";
import {MixedHead, carried} from "../data/mixing.js";
import {hasLinks, keyFollows, pairIn, pairOfPinned} from "../data/pair.js";
import {weightText} from "../data/scale.js";
import {positions} from "../data/tokens.js";

/** @import {BlockKind} from "./blocks.js"
 * @import {Colours, Fonts} from "./style.js"
 * @import {Tooltip} from "./tooltip.js"
 * @import {Hatching} from "../data/raster.js"
 * @import {AnyHead, HeadChoice, Picture, Recording, Stream} from "../data/recording.js"
 * @import {Places} from "../data/head.js"
 * @import {ScaleName} from "../data/scale.js"
 * @import {Store} from "../data/store.js"
 * @import {Outcome} from "../claim/matters.js"
 * @import {Direction} from "../seen/patches.js"
 * @import {Said} from "../seen/telling.js" */

/** A query and a key, as positions; null where none is meant.
 * @typedef {{query: number | null, key: number | null}} Pair */

/** A head that is shown while it is pointed at, with the pair that is meant in it, if one is.
 * @typedef {{stream?: string, layer: number, head: number, query: number | null, key: number | null}} Preview */

/**
 * What the reader has chosen and points at. Only `Store.set` changes it, and everybody hears which names changed.
 * @typedef {object} State
 * @property {string} stream
 * @property {number} layer
 * @property {number} head
 * @property {ScaleName} scale
 * @property {boolean} single  whether one channel of such a layer is shown, not all together
 * @property {boolean} arrived  whether a layer without a softmax shows what arrives, not its weights
 * @property {boolean} scaleChosen  by the reader, not by the length of the text
 * @property {boolean} hideSpecial
 * @property {Direction} direction  of a picture or a sound: whether what is chosen looks, or is looked at
 * @property {boolean} smooth  whether weights go over from patch to patch
 * @property {boolean} after  of a sound: whether rows are meant that have read a word, not those that are about to write it
 * @property {boolean} aligned  whether the mean of the heads that align is shown in place of one head
 * @property {number} strength  of what is laid over a picture, from 0 to 100
 * @property {BlockKind} blocks  what the map of a long text shows of each
 * @property {number | null} query  pinned
 * @property {number | null} key
 * @property {number | null} overQuery  pointed at
 * @property {number | null} overKey
 * @property {boolean} overLine  whether it is in the line of tokens
 * @property {Preview | null} preview  a head that is pointed at
 * @property {number | null} pairQuery  the pair that heads are ranked by
 * @property {number | null} pairKey
 * @property {boolean} pairChosen  by the reader; else it is the pair that the head on the screen links most
 * @property {Outcome | null} matters  what becomes of the model without a head, or that the host is at it
 * @property {number} found  how often findings came after the text
 * @property {number} loaded  how many layers have been read
 * @property {string} size  of the place and the window
 * @property {number} theme  how often it changed
 */

/**
 * What is on the screen: everything that is drawn follows from it.
 * @typedef {object} Shown
 * @property {Stream} stream
 * @property {AnyHead | null} head  null until it has been read
 * @property {Picture | null} picture  what there is to draw of it: the head, or of a long text first a small picture, then a map
 * @property {Places} rows
 * @property {Places} columns
 * @property {ScaleName} scale  of its colours: the reader's, or that of a layer without a softmax
 * @property {number} maximum  the weight that the deepest colour stands for
 * @property {{layer: number, head: number}} at  the head: the chosen one, or the one that is pointed at
 * @property {{query: number, key: number} | null} pair  the link that is told of it; null before it has been read
 */

/**
 * What an element may read of the others and ask of them. It takes the part of it that it needs, such as
 * `Pick<View, "now" | "pin">`, and says beside that which values of the state it writes: `Writes<"scale">`.
 * @typedef {object} View
 * @property {HTMLElement} root
 * @property {{readonly state: Readonly<State>}} store
 * @property {Recording} recording
 * @property {Readonly<Shown>} now
 * @property {Readonly<Colours>} colours
 * @property {Readonly<Fonts>} fonts
 * @property {Tooltip} tooltip
 * @property {() => Pair} active  the token or cell that is pointed at, or else the pinned one
 * @property {(pair: Pair, line?: boolean) => void} point  at a cell or, in the line, a token; at none to stop
 * @property {(preview: Preview | null) => void} preview  show a head while it is pointed at
 * @property {(wanted: Partial<HeadChoice> & Pair) => void} take  a head with a pair, and tell the host
 * @property {((page: string) => void) | null} open  go to another page of the host; null where it has none
 * @property {(pair: Pair, how: {pair: boolean}) => void} pin  and, where `pair`, rank the heads by it
 * @property {(wanted: Partial<HeadChoice>) => void} choose  a head, and tell the host
 * @property {(query: number, key: number) => void} announceCell  to those who can't see it
 * @property {() => void} resized  something has another size than before
 * @property {() => number} room  how high grid and matrix may be, in pixels
 * @property {(period: number, strength?: number) => Hatching} hatching  of blocked cells
 * @property {(() => Said[] | null) | null} told  what is said of a picture or a sound, in place of what is said of a text
 */

/** The values of the state that an element writes.
 * @template {keyof State} Names
 * @typedef {{store: {readonly state: Readonly<State>, set: (values: Partial<Pick<State, Names>>) => void}}} Writes */

/** An element of the explorer: its node, and drawing it anew after some names of the state changed.
 * @typedef {{node: HTMLElement, draw: (changed: Set<keyof State>) => void}} Part */

/** The view as the explorer itself keeps it: there alone the store, what is shown and the colours are set.
 * @typedef {Omit<View, "store"> & {store: Store<State>, live: HTMLElement}} OwnView */

/** @typedef {"query" | "key" | "overQuery" | "overKey" | "overLine" | "preview" | "pairQuery" | "pairKey" | "pairChosen"} Chosen */

/** @type {Readonly<Pick<State, Chosen>>} */
export const NOTHING_CHOSEN = {
  ...{query: null, key: null, overQuery: null, overKey: null, overLine: false},
  ...{preview: null, pairQuery: null, pairKey: null, pairChosen: false},
};
// How high grid and matrix may be in a window `at` pixels high; a taller window gives them what it has more.
// Two lines of tokens take `lines` more than one.
const ROOM = {least: 384, at: 860, most: 640, lines: 44};

/** The view of an explorer that is drawn inside `root`, which is on the page already; `onChoice` hears of heads that
 * the reader chooses.
 * @param {HTMLElement} root @param {Store<State>} store @param {Recording} recording
 * @param {(choice: HeadChoice) => void} onChoice @param {((page: string) => void) | null} onOpen @returns {OwnView} */
export function createView(root, store, recording, onChoice, onOpen) {
  const live = element("p", {class: "av-live", "aria-live": "polite"});
  const tooltip = createTooltip(root);
  /** @type {OwnView} */
  const view = {
    root,
    store,
    recording,
    live,
    tooltip,
    now: look(store.state, recording),
    ...readStyle(root),
    active: () => {
      const {query, key, overQuery, overKey} = store.state;
      return overQuery !== null || overKey !== null ? {query: overQuery, key: overKey} : {query, key};
    },
    open: onOpen,
    point: ({query, key}, line = false) => store.set({overQuery: query, overKey: key, overLine: line}),
    preview: (preview) => {
      // Of another stream there are other tokens, and of a head that hasn't been read no numbers: pointing shows neither.
      const {stream} = store.state;
      const there = (preview?.stream ?? stream) === stream && preview !== null && recording.head({...preview, stream});
      store.set({preview: there ? preview : null});
    },
    pin: ({query, key}, {pair}) => {
      const told = pair
        ? {pairQuery: query, pairKey: key, pairChosen: true}
        : pairOfPinned(store.state, view.now, query);
      store.set({query, key, ...told});
      if (query !== null) announceRow(view, query);
      if (told !== null) onChoice(choiceOf(store.state));
    },
    choose: (wanted) => {
      const next = recording.nearest({...store.state, ...wanted});
      showHead(store, next);
      store.set({preview: null});
      if (keyFollows(store.state))
        store.set(pairOfPinned(store.state, look(store.state, recording), store.state.query) ?? {});
      onChoice(choiceOf(store.state));
    },
    take: ({query, key, ...wanted}) => {
      showHead(store, recording.nearest({...store.state, ...wanted}));
      store.set({query: null, key: null, pairQuery: query, pairKey: key, pairChosen: true, preview: null});
      onChoice(choiceOf(store.state));
    },
    announceCell: (query, key) => announceCell(view, query, key),
    resized: () => store.set({size: `${store.state.size}+`}),
    room: () => roomOf(root.clientWidth, view.now.stream.own),
    told: null,
    hatching: (period, strength = 1) => hatchingOf(view.colours, period, strength),
  };
  return view;
}

/** What is on the screen.
 * @param {Readonly<State>} state @param {Recording} recording
 * @param {boolean} soon  whether the links of a long text's head are only looked for later, where they aren't known
 * @returns {Shown} */
export function look(state, recording, soon = false) {
  const stream = recording.stream(state.stream);
  const at = {
    stream: state.stream,
    layer: state.preview?.layer ?? state.layer,
    head: state.preview?.head ?? state.head,
  };
  const whole = state.preview !== null || !(state.single && stream.layers[at.layer].channels);
  const head = readAs(whole ? recording.head(at) : recording.channel(at), state);
  const rows = positions(stream.queries, state.hideSpecial);
  const columns = positions(stream.keys, state.hideSpecial);
  const maps = head ? null : recording.maps(at);
  const picture = head ?? (maps?.shows(rows, columns) ? maps : whole ? recording.picture(at) : null);
  const scale = picture instanceof MixedHead ? picture.scale : state.scale;
  const largest = scale === "maximum" || picture instanceof MixedHead;
  const maximum = largest ? (picture?.maximum(rows, columns) ?? 0) : 1;
  const drawn = {stream, head, picture, rows, columns, scale, maximum, at};
  return {...drawn, pair: soon && linksAreMissing(recording, drawn) ? null : pairShown(state, recording, drawn)};
}

/** A head as the reader wants it: of a layer without a softmax its weights, or what arrives by them.
 * @template P @param {P} head @param {Pick<State, "arrived">} state @returns {P | MixedHead} */
export function readAs(head, {arrived}) {
  return head instanceof MixedHead && arrived ? head.arrived : head;
}

/** Whether it takes a while to tell the links of the head on the screen: of a long text they are looked for in its map.
 * @param {Recording} recording @param {Pick<Shown, "head" | "rows" | "columns">} drawn */
export function linksAreMissing({header}, {head, rows, columns}) {
  return Boolean(header.long) && head !== null && !hasLinks(head, rows, columns);
}

/** The link that is told: the one that the reader chose, else the head's own.
 * @param {Readonly<State>} state @param {Recording} recording @param {Omit<Shown, "pair">} drawn */
function pairShown({preview, pairQuery, pairKey, pairChosen}, recording, drawn) {
  if (preview && preview.query !== null && preview.key !== null) return {query: preview.query, key: preview.key};
  if (pairQuery !== null && pairKey !== null && pairChosen) return {query: pairQuery, key: pairKey};
  return pairIn(recording, drawn, drawn.at);
}

/** What the host is told of a choice; a pair that the reader didn't choose is the head's own.
 * @param {Readonly<State>} state @returns {HeadChoice} */
export function choiceOf({stream, layer, head, pairQuery, pairKey, pairChosen, arrived, single}) {
  const pair = {query: pairChosen ? pairQuery : null, key: pairChosen ? pairKey : null};
  return {stream, layer, head, ...pair, arrived, single};
}

/** Turn to a head; what was chosen of another stream's tokens is let go.
 * @param {Store<State>} store @param {HeadChoice} choice */
export function showHead(store, {stream, layer, head}) {
  const elsewhere = stream === store.state.stream ? {} : NOTHING_CHOSEN;
  store.set({...elsewhere, stream, layer, head});
}

/** @param {number} width @param {boolean} own */
function roomOf(width, own) {
  if (width < 720) return Math.min(Math.max(width, 260), 440);
  const least = ROOM.least - (own ? 0 : ROOM.lines);
  return Math.min(Math.max(least + window.innerHeight - ROOM.at, least), ROOM.most);
}

/** @param {Pick<OwnView, "now" | "live">} view @param {number} query @param {number} key */
function announceCell({now: {head, stream}, live}, query, key) {
  if (head === null) return;
  const [from, to] = [stream.queries.spoken[query], stream.keys.spoken[key]];
  const weight = withoutWeight(head, query, key) ?? weightText(head.at(query, key));
  live.textContent =
    head instanceof MixedHead ? `${to} ${carried(head, query, key)} to ${from}` : `${from} attends to ${to}, ${weight}`;
}

/** @param {Pick<OwnView, "now" | "live">} view @param {number} query */
function announceRow({now: {head, columns, stream}, live}, query) {
  if (head === null) return;
  const size = (/** @type {number} */ key) => Math.abs(head.at(query, key));
  const best = columns.reduce((most, key) => (size(key) > size(most) ? key : most), columns[0]);
  if (head instanceof MixedHead) {
    live.textContent = `${stream.queries.spoken[query]}: most by ${stream.keys.spoken[best]}, which ${carried(head, query, best)}`;
    return;
  }
  const weight = weightText(head.at(query, best));
  live.textContent = `${stream.queries.spoken[query]} attends most to ${stream.keys.spoken[best]}, ${weight}`;
}
