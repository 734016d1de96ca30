// The line of controls: which head is on the screen, how it is coloured, what is left out.

import {element} from "./element.js";
import {SCALES, SCALE_NAMES} from "../data/scale.js";

/** @import {Part, View, Writes} from "./view.js"
 * @import {Axis} from "../data/tokens.js" */

let groups = 0;
/** @type {readonly {value: "all" | "one", label: string, title: string}[]} */
const CHANNELS = [
  {value: "all", label: "All", title: "How much arrives in all channels together"},
  {value: "one", label: "One", title: "One channel\u2019s own matrix, with its signs"},
];
/** @type {readonly {value: "weight" | "arrived", label: string, title: string}[]} */
const MIXED_READINGS = [
  {value: "weight", label: "Weight", title: "How much of each value is carried to a query, or, below 0, taken away"},
  {value: "arrived", label: "What arrived", title: "How long the vector is that arrives: the weight times the value"},
];

/** The controls and the readout.
 * @param {Pick<View, "recording" | "now" | "choose"> & Writes<"scale" | "scaleChosen" | "arrived" | "single" | "hideSpecial">} view
 * @returns {Part} */
export function createControls(view) {
  const {store, recording} = view;
  const readout = element("p", {class: "av-readout", "data-testid": "explorer-readout"});
  const streams = createStreams(view);
  const scales = segments(
    "Colour",
    SCALE_NAMES.map((value) => ({value, label: SCALES[value].label, title: SCALES[value].title})),
    (scale) => store.set({scale, scaleChosen: true}),
  );
  const mixed = segments("Reading", MIXED_READINGS, (reading) => {
    store.set({arrived: reading === "arrived"});
    view.choose({});
  });
  const channels = createChannels(view);
  const special = element("input", {type: "checkbox"});
  special.onchange = () => store.set({hideSpecial: special.checked});
  const hiding = element(
    "label",
    {class: "av-check", title: "Hide the dimmed tokens"},
    special,
    hidingText(recording.streams.flatMap(({queries, keys}) => [queries, keys])),
  );
  const anySpecial = recording.streams.some(({queries, keys}) => queries.dimmed.includes(1) || keys.dimmed.includes(1));
  const node = element(
    "div",
    {class: "av-controls"},
    readout,
    streams?.node,
    scales.node,
    channels.node,
    mixed.node,
    anySpecial ? hiding : null,
  );
  return {
    node,
    draw() {
      const {stream} = store.state;
      const {layer, head} = view.now.at;
      const {label, number = layer} = view.now.stream.layers[layer];
      readout.replaceChildren(element("strong", {}, headWords(view, layer, head)));
      const {reading} = recording.header;
      if (reading && !reading.together)
        readout.append(element("span", {class: "av-quiet"}, ` \u00b7 ${reading.label}`));
      if (label !== String(number))
        readout.append(element("span", {class: "av-quiet"}, ` (layer ${label} of the model)`));
      streams?.select(stream);
      scales.select(store.state.scale);
      const {signed, layers} = view.now.stream;
      scales.node.hidden = Boolean(signed);
      mixed.node.hidden = layers[layer].per !== "head" && !(layers[layer].channels && store.state.single);
      channels.draw();
      mixed.select(store.state.arrived ? "arrived" : "weight");
      special.checked = store.state.hideSpecial;
    },
  };
}

/** What the head on the screen is called, or the channel.
 * @param {Pick<View, "recording" | "now" | "store">} view @param {number} layer @param {number} head */
function headWords({recording, now: {stream}, store: {state}}, layer, head) {
  const short = recording.headShort(stream, layer, head);
  const name = short.startsWith("Layer") ? short : `Head ${short}`;
  return state.single && state.preview === null ? name.replace("all channels", `Channel ${head}`) : name;
}

/** Of a layer with a matrix per channel: all of them together, or one by its number; only where a host hands it over.
 * @param {Pick<View, "recording" | "now" | "choose"> & Writes<"single">} view */
function createChannels(view) {
  const {store, recording} = view;
  const kinds = segments("Channels", CHANNELS, (which) => {
    store.set({single: which === "one"});
    view.choose({});
  });
  const number = element("input", {type: "number", class: "av-channel", min: "0", step: "1", "aria-label": "Channel"});
  number.onchange = () => view.choose({head: Number(number.value)});
  const node = element("span", {class: "av-check"}, kinds.node, number);
  return {
    node,
    draw() {
      const {channels = 0} = view.now.stream.layers[view.now.at.layer];
      const {single, head} = store.state;
      node.hidden = !channels || recording.ask === null;
      number.hidden = !single;
      number.max = String(channels - 1);
      number.value = String(head);
      kinds.select(single ? "one" : "all");
    },
  };
}

/** The switch between the kinds of attention; null if there is one. @param {Pick<View, "recording" | "choose">} view */
function createStreams({recording, choose}) {
  if (recording.streams.length < 2) return null;
  const entries = recording.streams.map(({name, signed}) => ({
    ...{value: name, label: name},
    title: signed ? "Show the layers without a softmax" : `Show the ${name} attention`,
  }));
  return segments("Attention", entries, (stream) => choose({stream}));
}

/** The same switch as a line of its own, on the stream that is shown, or nothing.
 * @param {Pick<View, "recording" | "choose" | "now">} view */
export function streamSwitch(view) {
  const streams = createStreams(view);
  streams?.select(view.now.stream.name);
  return streams ? [element("div", {class: "av-streams"}, streams.node)] : [];
}

/** @param {Axis[]} axes */
function hidingText(axes) {
  const special = axes.some((axis) => axis.special);
  const padding = axes.some((axis) => axis.padding);
  if (!padding) return "Hide special tokens";
  return special ? "Hide special tokens and padding" : "Hide padding";
}

/** Radio buttons drawn as one bar.
 * @template {string} V @param {string} legend @param {readonly {value: V, label: string, title: string}[]} entries
 * @param {(value: V) => void} onChoice */
export function segments(legend, entries, onChoice) {
  const group = `av-group-${++groups}`;
  /** @type {Map<V, HTMLInputElement>} */
  const inputs = new Map();
  const labels = entries.map(({value, label, title}) => {
    const input = element("input", {type: "radio", name: group, value, onchange: () => onChoice(value)});
    inputs.set(value, input);
    return element("label", {title}, input, element("span", {}, label));
  });
  const node = element("fieldset", {class: "av-segments"}, element("legend", {}, legend), ...labels);
  const select = (/** @type {V} */ value) => {
    const input = inputs.get(value);
    if (input) input.checked = true;
  };
  return {node, select};
}
