// One head's output among those of all heads, what it alone adds to what they are joined to, and that itself.

import {fullOf, stripOf} from "./entering.js";
import {flow, label, tidy} from "./scene.js";
import {svg} from "../parts/element.js";
import {furthest, present, rowOf, stepNamed, written} from "./numbers.js";

/** @import {Places} from "./geometry.js"
 * @import {Opened, PipelineHeader} from "./numbers.js"
 * @import {Box, Said, Scene} from "./scene.js" */

const PARTS = 16;
// Of more channels the chosen one's neighbours are shown.
const MOST_HEADS = 128;
// How wide a vector's strip is, and how far the strips stand apart, in pixels.
const [STRIP, APART] = [14, 6];
const NOT_RECORDED = "The joined output was not recorded";

/** All heads' outputs side by side, this head's among them, what it adds by its rows of W_O, and what all add up to.
 * @param {Scene} scene @param {Opened} opened @param {number} row @param {Places} places
 * @param {number} output  where the head's own output stands */
export function drawJoined(scene, opened, row, {joined, values, narrow}, output) {
  const {header} = opened;
  const {x, top, width, room} = joined;
  const {mixer} = header;
  // What a mixer's heads are joined to goes through its gate and norm: it stands among the rest.
  const wide = mixer ? width : width - 2 * (STRIP + APART) - 4;
  const outputs = present(rowOf(opened, "heads", row));
  const largest = Math.max(1e-9, furthest(outputs));
  const name = mixer?.per ?? "head";
  const shown = headsShown(header);
  const each = room / shown.length;
  scene.title(stepNamed(header, "joined"), mixer ? `All ${name}s` : "Heads joined", x + width, narrow ? top - 40 : 16, {
    below: `${header.heads} ${header.heads === 1 ? name : `${name}s`}`,
    end: true,
  });
  for (const [at, head] of shown.entries()) {
    const numbers = outputs.subarray(head * header.d_v, (head + 1) * header.d_v);
    drawHead(scene, header, head, numbers, {x, y: top + at * each, width: wide, height: each}, largest);
  }
  const middle = top + (shown.indexOf(header.head) + 0.5) * each;
  if (!mixer) drawStrips(scene, opened, row, {x: x + width - 2 * STRIP - APART, y: top, width: STRIP, height: room});
  if (narrow) return;
  // The head's number stands before its box.
  const [start, before] = [values.x + values.width + 4, x - 14 - 8 * String(header.head).length];
  const path = `M${tidy(start)} ${tidy(output)}C${tidy(before)} ${tidy(output)} ${tidy(start - 4)} ${tidy(middle)} ${tidy(before - 4)} ${tidy(middle)}`;
  scene.add("output this-head", flow(path, "av-v", 3.5, {x: before + 4, y: middle, towards: "right"}));
}

/** The heads that are shown: of very many the own one's neighbours.
 * @param {Pick<PipelineHeader, "head" | "heads">} header @returns {number[]} */
export function headsShown({head, heads}) {
  const count = Math.min(heads, MOST_HEADS);
  const first = Math.max(0, Math.min(head - Math.floor(count / 2), heads - count));
  return Array.from({length: count}, (_, at) => first + at);
}

/** What this head alone adds, and the joined vector beside it: both by the joined one's scale.
 * @param {Scene} scene @param {Opened} opened @param {number} row @param {Box} first  the left one's place */
function drawStrips(scene, opened, row, first) {
  const {header} = opened;
  const [adds, made] = [rowOf(opened, "adds", row), rowOf(opened, "joined", row)];
  const second = {...first, x: first.x + STRIP + APART};
  const strips = /** @type {const} */ ([
    [first, "this-head", adds, "av-v", String(header.head)],
    [second, "joined", made, "av-more", "all"],
  ]);
  for (const [box, tag, vector, role, name] of strips) {
    const place = {...box, x: tidy(box.x)};
    scene.add(
      tag,
      made && vector ? stripOf(vector, place, role, fullOf(made)) : svg("rect", {...place, class: "av-unknown"}),
      label(
        box.x + STRIP / 2,
        box.y + box.height + 14,
        `av-tick ${tag === "joined" ? "" : "av-v av-strong"}`,
        name,
        "middle",
      ),
    );
  }
  const numbers = `${header.heads} heads side by side${header.known.includes("output") ? " \u00b7 W_O" : ""}: ${header.d_model} numbers`;
  scene.hit(first, {
    group: "joined",
    tags: ["output", "this-head", `head-${header.head}`],
    told: addsTold(header, rowOf(opened, "adding", row), made !== null),
    from: "this head\u2019s output",
    to: "joined",
  });
  scene.hit(second, {
    group: "joined",
    tags: ["joined", "heads", "this-head"],
    told: [made ? numbers : NOT_RECORDED],
    from: "all heads",
    to: "the rest of the layer",
  });
}

/** What one head adds to the joined vector, or why that can't be told.
 * @param {Pick<PipelineHeader, "head" | "heads" | "known" | "d_v">} header
 * @param {Float32Array | null} adding  how long both vectors are, and how much of the joined one is this head's
 * @param {boolean} isRecorded  whether there is a joined vector
 * @returns {Said[]} */
export function addsTold({head, heads, known, d_v: width}, adding, isRecorded) {
  if (!isRecorded) return [NOT_RECORDED];
  if (!adding)
    return [
      "This head\u2019s own part is unknown: ",
      known.length ? "no known W_O gives the joined vector" : "no learned matrix is known, as in a trace from a file",
    ];
  const [own, all, part] = adding;
  const of = heads === 1 ? "W_O" : `rows ${head * width} to ${(head + 1) * width - 1} of W_O`;
  return [
    ["output", "av-v"],
    ` \u00b7 ${of}: norm ${written(own)}, joined ${written(all)}; head ${head}\u2019s part of joined: `,
    [`${written(part * 100, 0)} %`, "av-strong"],
    ", all heads and the bias 100 %",
  ];
}

/** @param {Scene} scene @param {PipelineHeader} header @param {number} head
 * @param {Float32Array} numbers @param {Box} box @param {number} largest */
function drawHead(scene, header, head, numbers, {x, y, width, height}, largest) {
  const isOwn = head === header.head;
  const parts = Math.min(PARTS, numbers.length, Math.max(1, Math.floor(height / 2)));
  const thick = (height - 4) / parts;
  const bars = Array.from({length: parts}, (_, part) => {
    const [from, to] = [part, part + 1].map((one) => Math.floor((one * numbers.length) / parts));
    const number = numbers
      .subarray(from, Math.max(from + 1, to))
      .reduce((best, one) => (Math.abs(one) > Math.abs(best) ? one : best), 0);
    const length = ((number / largest) * width) / 2;
    const left = x + width / 2 + Math.min(0, length);
    return svg("rect", {
      x: tidy(left),
      y: tidy(y + 2 + part * thick),
      width: tidy(Math.abs(length) + 0.4),
      height: tidy(thick * 0.8),
      class: `av-solid ${isOwn ? "av-v" : "av-less"}`,
    });
  });
  const frame = {
    x: tidy(x),
    y: tidy(y + 0.5),
    width: tidy(width),
    height: tidy(height - 1.5),
    rx: Math.min(4, height / 4),
  };
  scene.add(
    `heads head-${head} ${isOwn ? "this-head" : ""}`.trim(),
    svg("g", {}, svg("rect", {...frame, class: isOwn ? "av-own-head" : "av-head"}), ...bars),
  );
  if (height >= 12 || isOwn)
    scene.add(
      `heads head-${head}`,
      label(x - 5, y + height / 2 + 4, `av-tick ${isOwn ? "av-v av-strong" : ""}`, String(head), "end"),
    );
  const [first, last] = [head * header.d_v, (head + 1) * header.d_v - 1];
  const name = header.mixer?.per ?? "head";
  const numbered = first === last ? `number ${first}` : `numbers ${first} to ${last}`;
  /** @type {Said[]} */
  const told = [`${name} ${head}: ${numbered} of ${header.heads * header.d_v}`];
  scene.hit(
    {x, y, width, height},
    {
      group: "joined",
      tags: [`head-${head}`, ...(isOwn ? ["output"] : [])],
      told,
      from: isOwn ? "output" : `${name} ${head}`,
      to: header.mixer ? "gate, norm and projection" : "W_O",
    },
  );
}
