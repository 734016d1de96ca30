// The component: its elements in order, and the door through which a host speaks with it.

import {takeSegments} from "./chat/weights.js";
import {element} from "./parts/element.js";
import {rowsWith} from "./heads/grid.js";
import {numbered, placed, placedRanking} from "./heads/numbers.js";
import {NOTHING_CHOSEN, choiceOf, createView, showHead} from "./parts/view.js";
import {readStyle} from "./parts/style.js";
import {keyFollows, letsGo, pairIn, pairOfPinned} from "./data/pair.js";
import {Recording} from "./data/recording.js";
import {createStore, hasAny} from "./data/store.js";
import {EVERYTHING, createContents} from "./contents.js";

/** @import {OwnView, State} from "./parts/view.js"
 * @import {AskedPair, HeadChoice, Ranking} from "./data/recording.js"
 * @import {Outcome} from "./claim/matters.js"
 * @import {PackedFinding} from "./data/payload.js" */

/** What goes along to another text. The scale only where the reader chose it: a longer text begins on another one.
 * @typedef {Partial<Pick<State, "scale" | "scaleChosen" | "arrived" | "single" | "hideSpecial" | "blocks" | "direction" | "smooth" | "strength">>} Settings */

/** What a host says when it shows an explorer.
 * @typedef {object} Hosting
 * @property {() => "light" | "dark"} theme
 * @property {(choice: HeadChoice) => void} [onChoice]  hears what the reader chooses, at once
 * @property {(pair: AskedPair) => void} [onPair]  ranks the heads of a long text by a pair, and hands over heads
 * @property {(page: string) => void} [onOpen]  goes to another page of the host, with what is chosen here
 * @property {boolean} [crossing]  whether the page is about cross-attention
 * @property {Partial<HeadChoice> | null | undefined} [choice]  the head to begin with
 * @property {Settings | undefined} [settings] */

/** What a host may do with an explorer, with layers by the model's own numbers: `choose` shows a head without telling
 * `onChoice`, `refresh` looks at theme and size again, `receive` takes a head of a long text and `rank` the heads that
 * link two tokens, both made elsewhere, `find` findings that come after the text, `tell` says what becomes without a
 * head; `holds` tells whether a head is here, so that nobody has to be asked for it.
 * @typedef {{receive: (packet: Uint8Array) => Promise<boolean>, rank: (ranking: Ranking) => void,
 *   tell: (outcome: Outcome) => void, find: (findings: PackedFinding[]) => void,
 *   holds: (choice: HeadChoice) => boolean, choose: (wanted: Partial<HeadChoice>) => void, refresh: () => void,
 *   destroy: () => void, choice: () => HeadChoice, settings: () => Settings}} Explorer */

// In longer texts most weights are so small that they only show on the logarithmic scale.
const MANY_TOKENS = 64;

/** Show packed bytes inside `host`.
 * @param {Element} host @param {Uint8Array} bytes @param {Hosting} hosting @returns {Explorer} */
export function mountExplorer(host, bytes, {theme, onChoice = () => {}, onPair, onOpen, crossing, choice, settings}) {
  const recording = new Recording(bytes);
  recording.ask = onPair ?? null;
  const root = element("div", {class: "av-explorer", "data-testid": "explorer", "data-theme": theme()});
  const store = createStore(firstState(recording, choice, settings));
  host.replaceChildren(root);
  const view = createView(root, store, recording, (next) => onChoice(numbered(recording, next)), onOpen ?? null);
  const contents = createContents(view, crossing);
  let gone = false;
  store.listen(draw);
  const unfollow = followSize(root, () => store.set({size: `${root.clientWidth} ${view.room()}`}));
  draw(new Set(EVERYTHING));

  /** @param {Set<keyof State>} changed */
  function draw(changed) {
    if (gone) return;
    if (changed.has("stream") || changed.has("layer")) loadLayers(view, () => gone);
    if (recording.header.long && hasAny(changed, "stream", "layer", "head")) loadHead(view, () => gone);
    contents.draw(changed, choosePair);
  }

  return {
    async receive(packet) {
      if (!(await recording.receive(packet)) || gone) return false;
      takeSegments(recording, packet);
      store.set({loaded: store.state.loaded + 1});
      return true;
    },
    rank(ranking) {
      if (recording.takeRanking(placedRanking(recording, ranking))) store.set({loaded: store.state.loaded + 1});
    },
    tell: (outcome) => store.set({matters: outcome}),
    find(findings) {
      recording.header.findings = findings;
      store.set({found: store.state.found + 1, loaded: store.state.loaded + 1});
    },
    holds: (wanted) => isHere(recording, placed(recording, wanted)),
    choose: (wanted) => {
      showHead(store, placed(recording, wanted));
      const asked = askedPair(recording, wanted);
      store.set(mixingOf(wanted, store.state));
      store.set({...asked, ...(letsGo(store.state, asked) ? {query: null, key: null} : {})});
    },
    refresh() {
      // While the host moves the element it is on no page, and has no colours.
      if (!root.isConnected) return;
      followTheme(view, theme());
      store.set({theme: store.state.theme + 1});
    },
    choice: () => numbered(recording, choiceOf(store.state)),
    settings: () => settingsOf(store.state),
    destroy() {
      gone = true;
      contents.stop();
      unfollow();
      store.stop();
      root.remove();
    },
  };
}

/** Measure whenever the place or the window gets another size; returns what ends that.
 * @param {HTMLElement} root @param {() => void} measure */
function followSize(root, measure) {
  const observer = new ResizeObserver(measure);
  observer.observe(root);
  window.addEventListener("resize", measure);
  return () => {
    observer.disconnect();
    window.removeEventListener("resize", measure);
  };
}

/** Whether nobody has to be asked for a head. @param {Recording} recording @param {HeadChoice} at */
function isHere(recording, at) {
  return recording.has(at) || recording.head(at) !== null;
}

/** @param {Recording} recording @param {Partial<HeadChoice> | null | undefined} choice
 * @param {Settings | undefined} settings @returns {State} */
function firstState(recording, choice, settings) {
  const longest = Math.max(...recording.streams.map(({keys}) => keys.count));
  return {
    ...placed(recording, choice ?? recording.header.choice ?? {}),
    scale: longest > MANY_TOKENS ? "logarithmic" : "linear",
    scaleChosen: false,
    hideSpecial: Boolean(recording.header.seen?.sound),
    ...{blocks: "largest", direction: "from", smooth: true, strength: 100, after: false, aligned: false},
    ...settings,
    ...mixingOf(choice ?? {}, {arrived: false, single: false, ...settings}),
    ...NOTHING_CHOSEN,
    ...askedPair(recording, choice ?? recording.header.choice ?? {}),
    matters: null,
    ...{found: 0, loaded: 0},
    size: "",
    theme: 0,
  };
}

/** What a host wants shown of a layer without a softmax, else what is shown already.
 * @param {Partial<HeadChoice>} wanted @param {Pick<State, "arrived" | "single">} before */
function mixingOf(wanted, before) {
  return {arrived: wanted.arrived ?? before.arrived, single: wanted.single ?? before.single};
}

/** @param {Readonly<State>} state @returns {Settings} */
function settingsOf({arrived, single, hideSpecial, blocks, direction, smooth, strength, scale, scaleChosen}) {
  return {
    arrived,
    single,
    hideSpecial,
    blocks,
    direction,
    smooth,
    strength,
    ...(scaleChosen ? {scale, scaleChosen} : {}),
  };
}

/** @param {OwnView} view @param {"light" | "dark"} theme */
function followTheme(view, theme) {
  view.root.dataset["theme"] = theme;
  const style = readStyle(view.root);
  // Between two pages of the host the element has no style: the colours stay what they were.
  if (style.colours.query) Object.assign(view, style);
}

/** Read the layer on the screen first, then the others, one after another so that the page stays awake.
 * @param {Pick<OwnView, "store" | "recording">} view @param {() => boolean} gone */
async function loadLayers({store, recording}, gone) {
  const {stream, layer} = store.state;
  const all = rowsWith(recording, recording.stream(stream)).map(({at}) => at);
  const others = all.filter((at) => at.stream !== stream || at.layer !== layer);
  for (const at of [{stream, layer}, ...others]) {
    if (gone() || store.state.stream !== stream) return;
    const before = recording.isReady(at.stream, at.layer);
    await recording.load(at.stream, at.layer);
    if (!before && !gone()) store.set({loaded: store.state.loaded + 1});
  }
}

/** Read the head on the screen, where it came along with the text; in a file, then the others of its layer for the
 * search.
 * @param {Pick<OwnView, "store" | "recording">} view @param {() => boolean} gone */
async function loadHead({store, recording}, gone) {
  const {stream, layer, head} = store.state;
  for (const next of recording.headsToRead({stream, layer, head})) {
    const read = await recording.loadHead({stream, layer, head: next});
    if (gone() || store.state.stream !== stream || store.state.layer !== layer) return;
    if (read) store.set({loaded: store.state.loaded + 1});
  }
}

/** Until the reader has chosen two tokens, the pair is the one that the head on the screen is told by; with a query
 * alone pinned, what that looks at in the head, which may have been read only now.
 * @param {Pick<OwnView, "store" | "recording" | "now" | "choose">} view */
function choosePair({store, recording, now, choose}) {
  const {pairChosen, preview, query, pairKey} = store.state;
  if (preview !== null) return;
  if (keyFollows(store.state)) {
    const followed = pairOfPinned(store.state, now, query);
    if (followed && followed.pairKey !== pairKey) choose({});
    return;
  }
  if (pairChosen) return;
  const pair = pairIn(recording, now, now.at);
  if (pair) store.set({pairQuery: pair.query, pairKey: pair.key});
}

/** A pair that the host asks for, where the text has it.
 * @param {Recording} recording @param {Partial<HeadChoice>} wanted @returns {Partial<State>} */
function askedPair(recording, {stream, query, key}) {
  const {queries, keys} = recording.stream(stream);
  const there = query != null && key != null && query < queries.count && key < keys.count;
  return there ? {pairQuery: query, pairKey: key, pairChosen: true} : {pairChosen: false};
}
