// The number as a story of a few steps, each computed; a press shows what it tells of.

import {doesWith, isMadeUpFor, isMixer, mainPart, mainSource, nameOfHead, spokenAt, wordAt} from "./reading.js";
import {element} from "../parts/element.js";

/** @import {Place} from "./map.js"
 * @import {WhyHeader} from "./reading.js" */

/** What a step shows when it is pressed: a head, the score of a pair in a head, or the other side of the score.
 * @typedef {{head: Place} | {pair: [number, number, number, number], stream?: string} | {side: "key" | "query"}} StoryPress */

/** @typedef {{words: string, press: StoryPress}} StoryStep */

// A head that wrote less is no step of a story.
const LEAST = 0.3;

/** The steps of a story.
 * @param {WhyHeader} header
 * @param {Map<string, number>} silenced  what the number is without a head
 * @returns {StoryStep[]} */
export function storyOf(header, silenced) {
  const [top] = header.listed;
  if (!top) return [];
  return header.less ? ofWord(header, silenced, top) : ofPair(header, top);
}

/** @param {WhyHeader} header @param {Map<string, number>} silenced @param {Place} top @returns {StoryStep[]} */
function ofWord(header, silenced, top) {
  const looked = lookedAt(header, top);
  const against = header.map[top[0]][top[1]] * header.total < 0 ? ", with the opposite sign" : "";
  /** @type {StoryStep[]} */
  const steps = [
    {
      words: `${nameOfHead(header, top)} contributes most${against}: it ${doesWith(header, top)}${writes(header, top)}`,
      press: {head: top},
    },
    {
      words: isMixer(header, top)
        ? `How does ${nameOfHead(header, top)} carry it? Step by step`
        : `Why does ${nameOfHead(header, top)} attend there?`,
      press: {pair: [top[0], top[1], header.at, looked]},
    },
  ];
  const [first, second] = header.listed.filter((place) => isReplaced(header, silenced, place));
  if (first) {
    const both =
      second &&
      isMixer(header, first) === isMixer(header, second) &&
      header.keys[lookedAt(header, first)] === header.keys[lookedAt(header, second)];
    const heads = both ? `${nameOfHead(header, first)} and ${nameOfHead(header, second)}` : nameOfHead(header, first);
    steps.push({
      words: `${heads} ${doesWith(header, first, Boolean(both))}, but later parts compensate for ${both ? "them" : "it"}`,
      press: {head: first},
    });
  }
  return steps;
}

/** The head that the story begins with: where heads carry the number, the largest of those that do.
 * @param {WhyHeader} header @param {Place} largest @returns {Place} */
function carrierOf({map, listed, total}, largest) {
  const net = map.flat().reduce((sum, one) => sum + one, 0);
  return (net * total > 0 && listed.find(([layer, head]) => map[layer][head] * total > 0)) || largest;
}

/** @param {WhyHeader} header @param {Place} largest @returns {StoryStep[]} */
function ofPair(header, largest) {
  const top = carrierOf(header, largest);
  const wrote = header.map[top[0]][top[1]];
  const side = header.side === "query" ? "query" : "key";
  const other = side === "key" ? "query" : "key";
  const looked = lookedAt(header, top);
  const before =
    header.own && header.unit === "word" && !header.seen?.boxes[looked] && looked === header.at - 1
      ? ", the previous word"
      : "";
  const against = wrote * header.total < 0 ? ", against the score" : "";
  const main = mainPart(header);
  const whole = main && main.kind !== "Heads" ? "Of the heads, " : "Head ";
  const most = `${whole}${nameOfHead(header, top)} contributes most to the ${side}${against}: at ${spokenAt(header, side, header.at)} it ${doesWith(header, top)}${before}`;
  return [
    {words: most, press: {head: top}},
    {words: `What contributes to the ${other}?`, press: {side: other}},
  ];
}

/** The key that contributes most through a head. @param {WhyHeader} header @param {Place} place */
function lookedAt(header, place) {
  return mainSource(header, place)?.[0] ?? 0;
}

/** What a head does for the two words, if its main word is one of them. @param {WhyHeader} header
 * @param {Place} place */
function writes(header, place) {
  const word = wordAt(header, "key", lookedAt(header, place)).replace(/[\u2080-\u2089]+/gu, "");
  if (word !== header.more && word !== header.less) return "";
  return ` and ${(word === header.more) === header.map[place[0]][place[1]] > 0 ? "promotes" : "suppresses"} it`;
}

/** Whether what comes after makes up for a head that wrote something.
 * @param {WhyHeader} header @param {Map<string, number>} silenced @param {Place} place */
function isReplaced(header, silenced, place) {
  const [wrote, after] = [header.map[place[0]][place[1]], silenced.get(place.join(" "))];
  return after !== undefined && wrote >= LEAST && isMadeUpFor(wrote, header.total - after);
}

/** @param {WhyHeader} header @param {Map<string, number>} silenced @param {(press: StoryPress) => void} press
 * @param {boolean} leads  whether the page can show another number */
export function drawStory(header, silenced, press, leads) {
  const shown = storyOf(header, silenced).filter((step) => leads || "head" in step.press);
  const steps = shown.map((step, at) =>
    element(
      "li",
      {},
      element(
        "button",
        {class: "av-step", type: "button", "data-step": at, onclick: () => press(step.press)},
        element("b", {}, String(at + 1)),
        step.words,
      ),
    ),
  );
  return steps.length ? [element("ol", {class: "av-story", "aria-label": "Suggested steps"}, ...steps)] : [];
}
