// The terms of a score, largest first, and what becomes of their sum before the softmax.

import {chainOf, heightsOf, stepTold} from "./chain.js";
import {termTold} from "./factors.js";
import {bar, flow, label, tidy, widthOf} from "./scene.js";
import {svg} from "../parts/element.js";
import {signed, stageText, stepNamed} from "./numbers.js";

/** @import {Places} from "./geometry.js"
 * @import {ChainStep} from "./chain.js"
 * @import {Opened, Pair, PipelineHeader} from "./numbers.js"
 * @import {Hit, Said, Scene} from "./scene.js" */

const [HOW_FONT, TITLE_FONT, BIG_FONT] = ["12.5px", "650 13.5px", "650 22px"].map(
  (font) => `${font} system-ui, sans-serif`,
);

/** A named term, or all others of one sign: `many` says how many it stands for.
 * @typedef {{dimension: number | null, value: number, before: number, many: number}} SumTerm */

/** Draw the terms and their sum; gives where its way to the row begins.
 * @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Places} places
 * @param {(dimension: number) => {x: number, y: number}} product  where a product's bar ends
 * @returns {{x: number, y: number, turned: boolean}} */
export function drawSum(scene, opened, pair, places, product) {
  const {sum: column, term} = places;
  const chain = chainOf(opened, pair);
  const terms = sumTerms(pair);
  const {mixer} = opened.header;
  const [query, key] = mixer?.letters ?? ["q", "k"];
  const [first, name] = mixer ? [chain[0].name, chain[0].label] : ["scores", "Scores"];
  const below = terms.length ? `${query} · ${key}, largest first` : "";
  scene.title(stepNamed(opened.header, first), name, column.x, column.top - 24, {below});
  drawTerms(scene, pair, places, terms, product);
  return drawChain(scene, opened, pair, places, chain, column.top + 6 + terms.length * term + 28);
}

/** The terms that are named, all others that add, and all that take away. @param {Pair} pair @returns {SumTerm[]} */
export function sumTerms({named, terms}) {
  /** @type {SumTerm[]} */
  const found = [];
  let before = 0;
  const add = (/** @type {number | null} */ dimension, /** @type {number} */ value, many = 1) => {
    found.push({dimension, value, before, many});
    before += value;
  };
  for (const dimension of named) add(dimension, terms[dimension]);
  const others = [...terms].filter((_, dimension) => !named.includes(dimension));
  // Together they could be larger than every named term, though each is smaller.
  for (const group of [others.filter((one) => one >= 0), others.filter((one) => one < 0)])
    if (group.length)
      add(
        null,
        group.reduce((sum, one) => sum + one, 0),
        group.length,
      );
  return found;
}

/** @param {Scene} scene @param {Pair} pair @param {Places} places @param {SumTerm[]} terms
 * @param {(dimension: number) => {x: number, y: number}} product */
function drawTerms(scene, pair, {sum: {x, width, top}, narrow, term: step}, terms, product) {
  const ends = terms.flatMap(({before, value}) => [before, before + value]);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const unit = width / (high - low || 1);
  const zero = x - low * unit;
  const largest = Math.max(...pair.terms.map(Math.abs), 1e-9);
  const thick = step < 26 ? 5 : 8;
  for (const [at, {dimension, value, before, many}] of terms.entries()) {
    const y = top + 6 + at * step;
    const tag = dimension === null ? "rest" : `term-${dimension}`;
    const role = value < 0 ? "av-less" : "av-more";
    if (dimension !== null && !narrow) {
      const {x: fromX, y: fromY} = product(dimension);
      const middle = (fromX + x - 6) / 2;
      const path = `M${tidy(fromX)} ${tidy(fromY)}C${tidy(middle)} ${tidy(fromY)} ${tidy(middle)} ${tidy(y + 12)} ${tidy(x - 6)} ${tidy(y + 12)}`;
      scene.add(`${tag} ribbons`, flow(path, `${role} av-ribbon`, Math.max(1.2, (Math.abs(value) / largest) * 7)));
    }
    const name = dimension === null ? (value < 0 ? `${many} take away` : `${many} others add`) : `dim ${dimension}`;
    const joint =
      at < terms.length - 1
        ? svg("path", {
            d: `M${tidy(zero + (before + value) * unit)} ${tidy(y + 16)}v${tidy(step + thick)}`,
            class: "av-joint",
          })
        : null;
    scene.add(
      `${tag} sum`,
      label(x, y + 11, "av-below", name),
      label(x + width, y + 11, "av-term", signed(value), "end"),
      joint,
      bar(zero + before * unit, y + 16, value * unit, thick, `av-solid ${role} ${dimension === null ? "av-pale" : ""}`),
    );
    /** @type {Said[]} */
    const told =
      dimension === null
        ? [
            `${many} smaller ${many === 1 ? "term" : "terms"} that ${value < 0 ? "take away" : "add"}, together: `,
            [signed(value), "av-strong"],
          ]
        : termTold(pair, [dimension]);
    scene.hit(
      {x: x - 4, y: y - 2, width: width + 8, height: step - 2},
      {group: "sum", tags: [tag], told, from: "q \u00d7 k", to: "scores"},
    );
  }
}

/** @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Places} places @param {ChainStep[]} chain
 * @param {number} start */
function drawChain(scene, {header}, pair, {sum: {x, width}}, chain, start) {
  const heights = heightsOf(chain);
  const right = x + width;
  if (pair.terms.length) scene.add("", svg("path", {d: `M${x} ${tidy(start - 24)}H${tidy(right)}`, class: "av-rule"}));
  let [y, last] = [start, start];
  const tagged = chain.map(({name}) => `chain-${name}`).join(" ");
  for (const [at, step] of chain.entries()) {
    if (at > 0) y += heights[at - 1];
    const first = at === 0;
    const skipped = step.skipped;
    if (!first && !skipped) {
      scene.add(
        tagged,
        flow(`M${tidy(right - 26)} ${tidy(last + 13)}V${tidy(y - 26)}`, "av-more", 3, {
          x: right - 26,
          y: y - 21,
          towards: "down",
        }),
      );
    }
    const tag = `chain-${step.name}`;
    if (first) scene.add(tag, label(x, y + 4, "av-below", step.how));
    else {
      scene.title(stepNamed(header, step.name), step.label, x, y, {});
      scene.add(tag, label(x, y + 18, "av-below", step.how));
    }
    if (!skipped) {
      const text = stageText(pair, step.value);
      // Beside the title and the button of its matrix.
      const beside = first ? widthOf(step.how, HOW_FONT) : widthOf(step.label, TITLE_FONT) + 24;
      const size = beside + 8 + widthOf(text, BIG_FONT) > width ? "av-middle" : "av-big";
      scene.add(tag, label(right, y + 5, `${size} ${step.value === -Infinity ? "av-muted" : ""}`, text, "end"));
    }
    const box = skipped
      ? {x, y: y + 5, width, height: 18}
      : {x: x + width * 0.42, y: y - 20, width: width * 0.6, height: 42};
    scene.hit(box, chainHit(header, pair, chain, at));
    if (!skipped) last = y;
  }
  return {x: right, y: last, turned: chain[chain.length - 1].skipped};
}

/** @param {PipelineHeader} header @param {Pair} pair @param {ChainStep[]} chain @param {number} at @returns {Hit} */
function chainHit(header, pair, chain, at) {
  const step = chain[at];
  const [before, after] = [chain[at - 1], chain[at + 1]];
  const tags = [`chain-${step.name}`, ...(before ? [`chain-${before.name}`] : ["sum", "ribbons", "product"])];
  /** @type {Said[]} */
  const told =
    at === 0
      ? [pair.terms.length ? `the terms' ${step.how} = ` : `${step.how}: `, [stageText(pair, step.value), "av-strong"]]
      : step.skipped
        ? [step.how]
        : [stepTold(step, header)];
  return {
    group: "chain",
    tags,
    told,
    from: before?.label.toLowerCase() ?? "q \u00d7 k",
    to: after?.label.toLowerCase() ?? (header.mixer ? "weight" : "softmax"),
  };
}
