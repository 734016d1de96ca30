// The line of arithmetic below the pipeline.

import {chainOf, stagesTold} from "./chain.js";
import {element} from "../parts/element.js";
import {written} from "./numbers.js";
import {weightText} from "../data/scale.js";

/** @import {Opened, Pair} from "./numbers.js"
 * @import {Said} from "./scene.js" */

/** The line at rest: the pair's whole way.
 * @param {{opened: Opened | null, pair: Pair | null, reading: HTMLElement}} pipeline */
export function tellWay({opened, pair, reading}) {
  if (!opened || !pair) return;
  /** @type {Said[]} */
  const [query, key] = opened.header.mixer?.letters ?? ["q", "k"];
  /** @type {Said[]} */
  const parts = pair.terms.length || !pair.isSigned ? [[query, "av-q"], " \u00b7 ", [key, "av-k"]] : [];
  if (pair.isSigned) {
    const way = stagesTold(opened, pair, pair.key);
    const last = [" \u2192 weight ", [weightText(pair.weight), "av-strong"], " \u2192 \u00d7 ", ["v", "av-v"]];
    const made = /** @type {Said[]} */ ([...parts, `${parts.length ? " = " : ""}${way}`, ...last]);
    reading.replaceChildren(element("p", {}, ...saidNodes(made)));
    return;
  }
  for (const {name, how, value, skipped, fate = "", parts: of = []} of chainOf(opened, pair)) {
    if (skipped) continue;
    const biased = of.length === 1 ? how : `${how.split(" ")[0]} ${of.length > 1 ? "bias" : "by position"}`;
    /** @type {Record<string, string>} */
    const did = {allowed: Number.isFinite(value) ? "allowed" : fate, biased};
    const step = did[name] ?? how.split(" = ")[0];
    parts.push(name === "scores" ? ` = ${written(value)}` : ` \u2192 ${step} = ${written(value)}`);
  }
  parts.push(" \u2192 softmax = ", [weightText(pair.weight), "av-strong"], " \u2192 \u00d7 ", ["v", "av-v"]);
  reading.replaceChildren(element("p", {}, ...saidNodes(parts)));
}

/** @param {Said[]} parts */
export function saidNodes(parts) {
  return parts.map((one) => (typeof one === "string" ? one : element("bdi", {class: one[1]}, one[0])));
}
