// When each word was spoken, as a table: a press on a row chooses the word.

import {element, within} from "../parts/element.js";
import {weightText} from "../data/scale.js";
import {hasAny} from "../data/store.js";
import {during, framesOf, rowOfWord} from "./speech.js";
import {chosenWord, hearingHeads, pinWord} from "./words.js";

/** @import {Part} from "../parts/view.js"
 * @import {PackedSound} from "../data/payload.js"
 * @import {SoundView} from "./hearing.js"
 * @import {Word} from "./speech.js" */

/** @param {SoundView} view @param {PackedSound} packed @returns {Part} */
export function createTimes(view, packed) {
  const frames = framesOf(view.now.stream.keys, packed.count / packed.rate);
  const body = element("tbody", {});
  const titles = ["word", "start", "end", "weight while spoken"].map((title) => element("th", {scope: "col"}, title));
  const table = element(
    "table",
    {class: "av-times", "data-testid": "word-times"},
    element("thead", {}, element("tr", {}, ...titles)),
    body,
  );
  const note = packed.words.some(({start}) => start === null)
    ? "The model detects no speech, so no word has a time."
    : "Seconds, aligned by the heads that follow the speech, so a word\u2019s ends may be a little early or late. " +
      "The weight is a share of all frames that the model reads.";
  const node = element(
    "section",
    {class: "av-list"},
    element("header", {}, element("h2", {}, "Word times")),
    table,
    element("p", {class: "av-quiet"}, note),
  );
  body.onclick = (event) => {
    const row = within(event, "[data-word]");
    if (row) pinWord(view, packed, Number(row.dataset["word"]), frames);
  };
  return {
    node,
    draw(changed) {
      if (!hasAny(changed, "loaded", "layer", "head", "preview", "overQuery", "query", "pairQuery", "after", "aligned"))
        return;
      const [heads, chosen] = [hearingHeads(view, packed), chosenWord(view, packed)];
      const rows = view.now.stream.queries.count;
      const weight = (/** @type {Word} */ word) => {
        if (word.start === null || word.end === null) return "";
        const line = rowOfWord(heads, word, frames, view.store.state.after, rows);
        return weightText(during(line, word.start, word.end, frames.step));
      };
      body.replaceChildren(...packed.words.map((word, at) => rowNode(word, at, at === chosen, weight(word))));
    },
  };
}

/** @param {Word} word @param {number} at @param {boolean} chosen @param {string} weight */
function rowNode({text, start, end}, at, chosen, weight) {
  const cells = [start, end].map((second) => element("td", {}, second === null ? "\u2013" : second.toFixed(2)));
  return element(
    "tr",
    {"data-word": at, "aria-selected": String(chosen)},
    element("th", {scope: "row"}, element("bdi", {}, text)),
    ...cells,
    element("td", {}, weight),
  );
}
