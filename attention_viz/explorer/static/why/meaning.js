// The chosen head: the text with where it looks and what it writes from each word, and what that means.

import {meaningOf, plainNumber, signed, wordAt} from "./reading.js";
import {amount} from "./sum.js";
import {element} from "../parts/element.js";

/**
 * @import {Place, WhyView} from "./map.js"
 * @import {WhyHeader} from "./reading.js"
 */

/**
 * The text with where the chosen head looks, and what it wrote from each word.
 * @param {WhyHeader} header
 * @param {Place} place
 */
export function drawWords(header, place) {
  const sources = new Map((header.sources[place.join(" ")] ?? []).map(([at, ...two]) => [at, two]));
  const full = Math.max(...[...sources.values()].map(([, number]) => Math.abs(number)), 1e-9);
  const words = header.keys.map((word, at) => {
    const [weight, number] = sources.get(at) ?? [0, 0];
    const height = (Math.abs(number) / full) * 18;
    const top = number < 0 ? 19 : 19 - height;
    return element(
      "li",
      {"data-at": at},
      element("span", {class: "av-share"}, weight >= 0.1 ? weight.toFixed(2) : ""),
      element(
        "span",
        {
          class: "av-heard",
          style: `--av-weight: ${Math.round(weight * 100)}%`,
          "data-looks": header.own && at === header.at ? "" : null,
        },
        word,
      ),
      element(
        "span",
        {class: "av-wrote"},
        element("i", {
          class: number < 0 ? "av-less" : "av-more",
          style: `top: ${top}px; height: ${Math.max(height, number ? 1 : 0)}px`,
        }),
      ),
      element(
        "span",
        {class: "av-share"},
        Math.abs(number) >= 0.1 && Math.abs(number) > full / 20 ? amount(number) : "",
      ),
    );
  });
  return element(
    "ol",
    {class: "av-sentence", "aria-label": "Where the head looks, and what it writes from there", tabindex: "0"},
    ...words,
  );
}

/**
 * The chosen head in words.
 * @param {WhyHeader} header
 * @param {WhyView} view
 */
export function drawMeaning(header, {chosen: [layer, head], silenced, writes}) {
  const name = `${layer} ${head}`;
  const wrote = header.map[layer]?.[head] ?? 0;
  const sources = header.sources[name] ?? [];
  const after = silenced.get(name);
  const most = [...sources].sort((one, other) => Math.abs(other[2]) - Math.abs(one[2]))[0];
  const title = element("h3", {}, `Layer ${layer}, head ${head}: `, amount(wrote), " written");
  if (after !== undefined) title.append(", ", amount(header.total - after), " missing when silenced");
  const said = most
    ? `From ${wordAt(header.queries, header.at)} it looks at ${wordAt(header.keys, most[0])} (${most[1].toFixed(2)}), and writes ${signed(most[2])} of what it fetches there.`
    : "It wrote nothing here.";
  return element(
    "section",
    {class: "av-meaning", "aria-live": "polite"},
    title,
    element("p", {}, said),
    element(
      "p",
      {},
      after === undefined
        ? "The model runs without this head …"
        : `${meaningOf(wrote, header.total - after)} Silenced everywhere, ${plainNumber(header.total)} becomes ${plainNumber(after)}.`,
    ),
    ...wordsOf(writes.get(name)),
  );
}

/**
 * The words that a head's output promotes and suppresses, of all that the model knows.
 * @param {[string[], string[]] | undefined} writes
 */
function wordsOf(writes) {
  if (!writes?.[0].length) return [];
  const [promoted, suppressed] = writes.map((words) => words.join(", "));
  return [
    element(
      "p",
      {class: "av-writes"},
      element("b", {}, "Writes for: "),
      promoted,
      element("b", {}, " · against: "),
      suppressed,
    ),
  ];
}
