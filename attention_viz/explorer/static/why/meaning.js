// The chosen head: the text with where it looks and what it writes from each word, and what that means.

import {weightText} from "../data/scale.js";
import {headInFull, isMixer, meaningOf, plainNumber, signed, spokenAt, wordsFor} from "./reading.js";
import {amount} from "./sum.js";
import {setApart} from "../data/spelling.js";
import {element} from "../parts/element.js";

/** @import {Place, WhyView} from "./map.js"
 * @import {WhyHeader} from "./reading.js" */

// Neither weight nor contribution.
/** @type {[number, number]} */
const UNREAD = [0, 0];

/** The text with where the chosen head looks, and what it wrote from each word; all that is read of images is one.
 * @param {WhyHeader} header @param {Place} place */
export function drawWords(header, place) {
  const name = place.join(" ");
  /** @type {Map<number, [number, number]>} */
  const sources = new Map((header.sources[name] ?? []).map(([at, ...two]) => [at, two]));
  const [boxes, ofImages] = [header.seen?.boxes ?? {}, header.seen?.over[name] ?? UNREAD];
  const full = Math.max(...[...sources.values(), ofImages].map(([, number]) => Math.abs(number)), 1e-9);
  const sizes = {size: header.sizes?.[name] ?? 1, full};
  const first = header.keys.findIndex((_, at) => boxes[at]);
  const words = header.keys.flatMap((word, at) => {
    if (at === first) return [drawWord("image", "image", ofImages, sizes, null)];
    const frame = header.own && at === header.at ? (header.side === "key" ? "key" : "query") : null;
    return boxes[at] ? [] : [drawWord(word, at, sources.get(at) ?? UNREAD, sizes, frame)];
  });
  const holds = isMixer(header, place) ? "signed weight" : "attention";
  const label = `The head’s ${holds} and contribution per word`;
  return element("ol", {class: "av-sentence", "aria-label": label, tabindex: "0"}, ...words);
}

/** @param {string} word @param {number | string} at @param {[number, number]} told  its weight, and what came of it
 * @param {{size: number, full: number}} sizes  the whole row, and the largest contribution
 * @param {string | null} frame */
function drawWord(word, at, [weight, number], {size, full}, frame) {
  const height = (Math.abs(number) / full) * 18;
  const bar = `top: ${number < 0 ? 19 : 19 - height}px; height: ${Math.max(height, number ? 1 : 0)}px`;
  const heard = weight < 0 ? "av-heard av-away" : "av-heard";
  const fill = `--av-weight: ${Math.round((Math.abs(weight) / size) * 100)}%`;
  const isLarge = Math.abs(number) >= 0.1 && Math.abs(number) > full / 20;
  return element(
    "li",
    {"data-at": at},
    element("span", {class: "av-share"}, Math.abs(weight) >= 0.1 * size ? weightText(weight) : ""),
    element("span", {class: heard, style: fill, "data-looks": frame}, word),
    element("span", {class: "av-wrote"}, element("i", {class: number < 0 ? "av-less" : "av-more", style: bar})),
    element("span", {class: "av-share"}, isLarge ? amount(number) : ""),
  );
}

/** What fill, bars and frame of the text mean. @param {WhyHeader} header @param {Place} place */
export function drawWordsLegend(header, place) {
  const [frame, fill] = [
    header.side === "key" ? "key" : "query",
    isMixer(header, place) ? "signed weight" : "attention",
  ];
  const words = `fill: ${fill} \u00b7 bars: contribution, up adds, down subtracts`;
  return element("p", {class: "av-note"}, words, header.own ? ` \u00b7 frame: the ${frame}` : "");
}

/** The chosen head in words. @param {WhyHeader} header @param {WhyView} view */
export function drawMeaning(header, {chosen: [layer, head], by, runs, after: numbers, writes}) {
  const name = `${layer} ${head}`;
  const wrote = header.map[layer]?.[head] ?? 0;
  const sources = header.sources[name] ?? [];
  const after = numbers.get(name);
  const most = [...sources].sort((one, other) => Math.abs(other[2]) - Math.abs(one[2]))[0];
  const named = headInFull(header, [layer, head]).replace("l", "L");
  const title = element("h3", {}, `${named}: `, amount(wrote), " direct in all");
  if (after !== undefined) title.append(", ", amount(header.total - after), ` ${wordsFor(by).missing}`);
  const said = most
    ? `Its largest part: at ${spokenAt(header, "query", header.at)} it ${actionOf(header, [layer, head], most)}, which contributes ${signed(most[2])}.`
    : "It contributes nothing here.";
  return element(
    "section",
    {class: "av-meaning", "aria-live": "polite"},
    title,
    element("p", {}, said),
    element("p", {}, cameOf(header, {by, runs}, wrote, after)),
    ...wordsOf(writes.get(name)),
  );
}

/** What a head does with one word, with the weight. @param {WhyHeader} header @param {Place} place
 * @param {[number, number, number]} source */
function actionOf(header, place, [at, weight]) {
  const word = spokenAt(header, "key", at);
  if (!isMixer(header, place)) return `attends to ${word} (${weightText(weight)})`;
  if (header.channels?.includes(place[0])) return `carries ${word} (${weightText(weight)} of what arrives)`;
  return `carries ${word} (weight ${weightText(weight)})`;
}

/** The words that a head's output promotes and suppresses, of all that the model knows.
 * @param {[string[], string[]] | undefined} writes */
function wordsOf(writes) {
  if (!writes?.[0].length) return [];
  const [promoted, suppressed] = writes.map((words) => words.map((word) => `\u201c${setApart(word)}\u201d`).join(", "));
  return [
    element(
      "p",
      {class: "av-writes"},
      element("b", {}, "Promotes: "),
      promoted,
      element("b", {}, " · suppresses: "),
      suppressed,
    ),
  ];
}

/** What becomes of the number, in words.
 * @param {WhyHeader} header @param {Pick<WhyView, "by" | "runs">} view @param {number} wrote @param {number | undefined} after */
function cameOf({total}, {by, runs}, wrote, after) {
  if (after === undefined) return by === "put" || !runs ? "" : "Running the model without this head …";
  const became = `${plainNumber(total)} becomes ${plainNumber(after)}.`;
  if (by === "put") return `With its output from the other text, ${became}`;
  return `${meaningOf(wrote, total - after)} Ablated at every position, ${became}`;
}
