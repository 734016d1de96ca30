// The rest of the layer: what its attention is added to, the MLP, the layers that follow, and how the run ends.

import {fullOf} from "./entering.js";
import {bar, cut, flow, label, tidy, widthOf} from "./scene.js";
import {svg} from "../parts/element.js";
import {written} from "./numbers.js";
import {numbersAt, readPayload} from "../data/payload.js";
import {weightText} from "../data/scale.js";

/** @import {Payload, Place} from "../data/payload.js"
 * @import {Places} from "./geometry.js"
 * @import {Opened, Pair} from "./numbers.js"
 * @import {Box, Hit, Said, Scene} from "./scene.js" */

/** How a run ends: of words, each shown query's likeliest ones with their probabilities.
 * @typedef {{kind: "next words" | "words" | "sentence" | "token" | "none", made: string,
 *   words: [word: string, probability: number][][]}} End */

/** What stands before the numbers, as rest_payload.py writes it; `note` alone where the rest isn't known.
 * @typedef {{of: string, note?: string, queries: number[], order: string, width: number,
 *   strips: [label: string, kind: string][], after: number[], end: End,
 *   arrays: Record<string, [at: Place, rows: number, columns: number]>}} RestHeader */

/** @typedef {{header: RestHeader, arrays: Record<string, {numbers: Float32Array, rows: number, columns: number}>}} Rest */

/** One line of the column. @typedef {{kind: "strip" | "block" | "gap", at: number, height: number}} RestLine */

const [STRIP_LINE, BLOCK_LINE, BAR_LINE, REST_STRIP] = [36, 40, 20, 12];
const REST_FONT = "11.5px system-ui, sans-serif";
const MLPS = new Set(["MLP", "mixture of experts"]);

/** @param {Uint8Array} bytes @returns {Rest} */
export function readRest(bytes) {
  /** @type {Payload<RestHeader>} */
  const payload = readPayload(bytes);
  const arrays = Object.entries(payload.header.arrays ?? {}).map(([name, [at, rows, columns]]) => [
    name,
    {numbers: numbersAt(payload, at, Float32Array), rows, columns},
  ]);
  return {header: payload.header, arrays: Object.fromEntries(arrays)};
}

/** How high the column is on a narrow screen. @param {Rest | null} rest  null while it is awaited */
export function restHeight(rest) {
  if (!rest || rest.header.note) return rest ? 90 : 360;
  const {strips, end} = rest.header;
  const blocks = strips.filter(([, kind]) => MLPS.has(kind)).length;
  const ends = {"next words": 130, words: 114, sentence: 84, token: 84, none: 40};
  return strips.length * STRIP_LINE + blocks * BLOCK_LINE + 44 + ends[end.kind];
}

/** A row of an array. @param {Rest} rest @param {string} name @param {number} row */
function restRow({arrays}, name, row) {
  const {numbers, columns} = arrays[name];
  return numbers.subarray(row * columns, (row + 1) * columns);
}

/** @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Places} places
 * @param {Rest | null} rest  null while it is awaited */
export function drawRest(scene, opened, pair, places, rest) {
  const {x, top, width} = places.rest;
  const row = rest && !rest.header.note ? rest.header.queries.indexOf(pair.query) : -1;
  const order = row < 0 || !rest ? "" : rest.header.order;
  scene.title("", "The rest", x, places.narrow ? top - 40 : 16, {below: row < 0 ? "" : `${order}, lengths`});
  if (!rest || row < 0) {
    const note = rest?.header.note ?? "Running the layer again…";
    const lines = wrapped(note, width);
    for (const [at, line] of lines.entries())
      scene.add("rest", label(x, top + 14 + at * 18, "av-small av-muted", line));
    return;
  }
  const end = drawStream(scene, rest, row, places);
  drawEnd(scene, opened, pair, rest, row, places, end);
}

/** The residual stream from the layer's input to its output; gives where it ends.
 * @param {Scene} scene @param {Rest} rest @param {number} row @param {Places} places */
function drawStream(scene, rest, row, {rest: {x, top, width}, joined, narrow}) {
  const {strips} = rest.header;
  const vectors = strips.map((_, at) => restRow(rest, `strip ${at}`, row));
  const full = Math.max(...strips.map(([, kind], at) => (kind === "normed" ? 0 : fullOf(vectors[at]))));
  let y = top + 2;
  for (const [at, [name, kind]] of strips.entries()) {
    if (MLPS.has(kind)) {
      drawBlock(scene, kind, {x, y: y + 2, width, height: BLOCK_LINE - 14}, rest.header.order);
      y += BLOCK_LINE;
    }
    const adds = at > 0 && kind !== "sum" && kind !== "normed";
    const sign = adds ? "+ " : kind === "sum" ? "= " : "";
    const own = kind === "attention" || kind === "mixer";
    const box = {x, y: tidy(y + 15), width, height: REST_STRIP};
    const size = written(restRow(rest, "lengths", row)[at], 2);
    const role = own ? "av-v" : "";
    const room = width - widthOf(size, REST_FONT) - 8;
    scene.add(
      `rest-${at} rest`,
      label(
        x,
        y + 10,
        `av-small ${role}`,
        firstFitting([`${sign}${name}`, `${sign}${name.replace("layer’s ", "")}`], room),
      ),
      label(x + width, y + 10, "av-small av-muted", size, "end"),
      // After a norm a vector has another scale.
      acrossOf(vectors[at], box, own ? "av-v" : "av-more", kind === "normed" ? fullOf(vectors[at]) : full),
    );
    scene.hit({...box, y: y - 2, height: STRIP_LINE - 4}, restHit(rest, row, at));
    if (own && !narrow) {
      const [from, to, middle] = [joined.x + joined.width + 3, x - 4, box.y + REST_STRIP / 2];
      const path = `M${tidy(from)} ${tidy(middle)}H${tidy(to - 6)}`;
      scene.add(`rest-${at} joined`, flow(path, "av-v", 2.5, {x: to, y: middle, towards: "right"}));
    }
    y += STRIP_LINE;
  }
  return y;
}

/** What one line tells. @param {Rest} rest @param {number} row @param {number} at @returns {Hit} */
function restHit(rest, row, at) {
  const {strips, width} = rest.header;
  const [name, kind] = strips[at];
  const before = strips.slice(0, at).filter(([, one]) => one === "sum").length;
  const length = written(restRow(rest, "lengths", row)[at]);
  const hit = {group: "rest", tags: [`rest-${at}`], told: /** @type {Said[]} */ ([]), from: "", to: ""};
  const next = strips[at + 1]?.[0] ?? "the next layer";
  if (kind === "sum") {
    const told = sumTold(restRow(rest, "most", row), before);
    return {...hit, tags: [at - 2, at - 1, at].map((one) => `rest-${one}`), told, from: strips[at - 1][0], to: next};
  }
  const told = /** @type {Said[]} */ ([`${name}: ${width} numbers, length `, [length, "av-strong"]]);
  if (kind === "normed") return {...hit, tags: [`rest-${at - 1}`, `rest-${at}`], told, from: "sum", to: next};
  const ofHeads = kind === "attention" || kind === "mixer";
  const own = ofHeads ? ["joined", "heads"] : MLPS.has(kind) ? ["mlp"] : [];
  const from = at === 0 ? "earlier layers" : kind === "attention" ? "all heads" : kind;
  const mixing = strips.some(([, one]) => one === "mixer") ? "mixer" : "attention";
  return {...hit, tags: [...hit.tags, ...own], told, from, to: at === 0 ? `${mixing}, sum` : "sum"};
}

/** A sum at the dimension with the largest addition. @param {Float32Array} most @param {number} number
 * @returns {Said[]} */
export function sumTold(most, number) {
  const [dimension, before, added, after] = most.subarray(number * 4, number * 4 + 4);
  const plus = added < 0 ? ` \u2212 ${written(-added, 3)}` : ` + ${written(added, 3)}`;
  return [`largest change, dimension ${dimension}: ${written(before, 3)}${plus} = `, [written(after, 3), "av-strong"]];
}

/** @param {Scene} scene @param {string} kind @param {Box} box @param {string} order */
function drawBlock(scene, kind, box, order) {
  const name = kind === "MLP" ? "MLP" : "experts (MLPs)";
  const reads = order === "pre-norm" ? "the sum, after a norm" : order === "parallel" ? "the layer’s input" : "the sum";
  scene.add(
    "rest mlp",
    svg("rect", {...box, x: tidy(box.x), y: tidy(box.y), rx: 6, class: "av-head"}),
    label(box.x + box.width / 2, box.y + box.height / 2 + 4.5, "av-strong", name, "middle"),
  );
  scene.hit(box, {
    group: "rest",
    tags: ["mlp"],
    told: [`${kind}: reads ${reads}, one token at a time`],
    from: reads,
    to: "the sum",
  });
}

/** The layers that follow, and how the run ends.
 * @param {Scene} scene @param {Opened} opened @param {Pair} pair @param {Rest} rest @param {number} row
 * @param {Places} places @param {number} y  where the stream ends */
function drawEnd(scene, {queries}, pair, rest, row, {rest: {x, width}}, y) {
  const {after, end} = rest.header;
  const [first, last] = [after[0], after[after.length - 1]];
  const rests = after.length > 1 ? `layers ${first}–${last}` : `layer ${first}`;
  const goes = after.length > 1 ? "go on" : "goes on";
  const through = after.length ? [`${rests} ${goes}`, rests] : ["that was the last layer", "the last layer"];
  scene.add("rest", flow(`M${tidy(x + 8)} ${tidy(y)}v8`, "av-more", 2.5, {x: x + 8, y: y + 15, towards: "down"}));
  scene.add("rest", label(x + 20, y + 11, "av-small av-muted", firstFitting(through, width - 20)));
  const top = y + 36;
  if (end.kind === "none") {
    for (const [at, line] of wrapped(end.made, width).entries())
      scene.add("rest", label(x, top + at * 17, "av-small av-muted", line));
    return;
  }
  const title = {"next words": "Next word", words: "Word here", sentence: "Sentence vector", token: "Token’s vector"};
  const isNext = end.kind === "next words";
  scene.title("", title[end.kind], x, top);
  const name = isNext ? fitted(`after ${queries.names[pair.query]}`, width) : "";
  if (name) scene.add("rest end", label(x, top + 16, "av-small av-muted", name));
  if (isNext || end.kind === "words") drawWords(scene, end.words[row], {x, y: top + (isNext ? 24 : 8), width});
  else {
    const vector = restRow(rest, "end", end.kind === "sentence" ? 0 : row);
    const box = {x, y: top + 8, width, height: 16};
    scene.add("rest end", acrossOf(vector, box, "av-more", fullOf(vector)));
    const made = end.kind === "sentence" ? end.made : "after the last layer";
    for (const [at, line] of wrapped(made, width).entries())
      scene.add("rest end", label(x, top + 40 + at * 17, "av-small av-muted", line));
    const told = /** @type {Said[]} */ ([`${made}: ${rest.header.width} numbers`]);
    scene.hit(box, {group: "end", tags: ["end"], told, from: "the last layer", to: "the output"});
  }
}

/** The likeliest words. @param {Scene} scene @param {[word: string, probability: number][]} words
 * @param {{x: number, y: number, width: number}} box */
function drawWords(scene, words, {x, y, width}) {
  const wide = width * 0.52;
  for (const [at, [word, share]] of words.entries()) {
    const middle = y + (at + 0.5) * BAR_LINE;
    const tags = `rest end end-${at}`;
    const number = weightText(share);
    const long = share * (width - wide);
    // Beside the bar if there is room, so that numbers stand alike.
    const inside = long + 4 + widthOf(number, REST_FONT) > width - wide;
    const end = x + wide + long + (inside ? -4 : 4);
    scene.add(
      tags,
      label(x, middle + 4, "av-mono av-small", cut(word, Math.floor((wide - 6) / 7.2))),
      bar(x + wide, middle - 7, long, 14, "av-solid av-weight"),
      label(end, middle + 4, `av-small ${inside ? "av-on-weight" : ""}`, number, inside ? "end" : "start"),
    );
    const told = /** @type {Said[]} */ ([`${word}: probability `, [share.toPrecision(4), "av-strong"]]);
    const box = {x, y: middle - BAR_LINE / 2, width, height: BAR_LINE};
    scene.hit(box, {group: "end", tags: [`end-${at}`], told, from: "the last layer, softmax", to: "the next token"});
  }
}

/** A vector as a strip from left to right. @param {Float32Array} vector @param {Box} box @param {string} role
 * @param {number} full */
function acrossOf(vector, {x, y, width, height}, role, full) {
  const each = width / vector.length;
  const parts = [...vector].map((number, at) =>
    svg("rect", {
      ...{y, height, x: tidy(x + at * each), width: tidy(each + 0.3)},
      class: `av-solid ${number < 0 ? "av-less" : role}`,
      "fill-opacity": tidy(Math.min(1, Math.abs(number) / full)),
    }),
  );
  return svg("g", {}, ...parts, svg("rect", {x, y, width, height, class: "av-frame"}));
}

/** The first of several wordings that fits a width in pixels; else the last one, cut.
 * @param {string[]} wordings @param {number} width */
function firstFitting(wordings, width) {
  const fits = wordings.find((words) => widthOf(words, REST_FONT) <= width);
  return fits ?? fitted(wordings[wordings.length - 1], width);
}

/** Words cut to a width in pixels. @param {string} words @param {number} width */
function fitted(words, width) {
  let signs = [...words].length;
  while (signs > 2 && widthOf(cut(words, signs), REST_FONT) > width) signs -= 1;
  return cut(words, signs);
}

/** Words in lines that fit a width. @param {string} words @param {number} width @returns {string[]} */
function wrapped(words, width) {
  /** @type {string[]} */
  const lines = [];
  for (const word of words.split(" ")) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : "";
    if (longer && widthOf(longer, REST_FONT) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
