// The chosen token's row and column as bars with numbers; with no token chosen, the head's strongest links.

import {element} from "./element.js";
import {linksOf} from "../data/pair.js";
import {MixedHead, rowSums, significant} from "../data/mixing.js";
import {lengthOf, weightText} from "../data/scale.js";
import {Strongest} from "../data/strongest.js";

/** @import {Part, View} from "./view.js"
 * @import {Places} from "../data/head.js"
 * @import {AnyHead} from "../data/recording.js"
 * @import {Axis} from "../data/tokens.js" */

/** @typedef {Pick<View, "store" | "now" | "active" | "pin">} BarsView */

/** A row or a column: its heaviest places, and what the open ones come to.
 * @typedef {{top: {place: number, weight: number}[], open: number, blocked: number, total: number}} Summary */

const MOST = 7;

/** Two short lists of bars. @param {BarsView} view @returns {Part} */
export function createBars(view) {
  const node = element("section", {
    class: "av-bars",
    "data-testid": "explorer-bars",
    "aria-label": "The strongest weights",
  });
  return {
    node,
    draw() {
      const {head} = view.now;
      node.replaceChildren(...(head === null ? [] : listsOf(view, head)));
    },
  };
}

/** @param {BarsView} view @param {AnyHead} head */
function listsOf(view, head) {
  const {query, key} = view.active();
  if (query === null && key === null) return [strongestBars(view, head)];
  return [
    ...(query === null ? [] : [rowBars(view, head, query)]),
    ...(key === null ? [] : [columnBars(view, head, key)]),
  ];
}

/** @param {BarsView} view @param {AnyHead} head @param {number} query */
function rowBars(view, head, query) {
  const {columns, stream} = view.now;
  const all = summed(columns, (key) => (head.isBlocked(query, key) ? null : head.at(query, key)));
  const mixed = head instanceof MixedHead;
  const title = element("h2", {}, token(stream.queries, query, "av-query"), mixed ? " receives of" : " attends to");
  const told = mixed ? rowSums(head, query, columns) : `row sums to ${head.sum(query, columns).toFixed(3)}`;
  const sum = element("span", {class: "av-sum"}, told);
  return list(view, title, sum, all, stream.keys, "av-keys");
}

/** @param {BarsView} view @param {AnyHead} head @param {number} key */
function columnBars(view, head, key) {
  const {rows, stream} = view.now;
  const all = summed(rows, (query) => (head.isBlocked(query, key) ? null : head.at(query, key)));
  const title = stream.signed
    ? element("h2", {}, token(stream.keys, key, "av-keys"), " goes to")
    : element("h2", {}, "Attending to ", token(stream.keys, key, "av-keys"));
  return list(view, title, null, all, stream.queries, "av-query");
}

/** @param {BarsView} view @param {AnyHead} head */
function strongestBars(view, head) {
  const {rows, columns, stream} = view.now;
  const words = linksOf(head, rows, columns, stream).slice(0, 2 * MOST + 2);
  // A single word has no other to look at.
  const cells = words.length ? words : head.strongest(rows, columns, 2 * MOST + 2, () => true);
  const areWords = [stream.queries, stream.keys].every((axis) => isText(axis, stream.name));
  const are = !words.length ? "tokens" : areWords ? "words" : "positions";
  const title = element(
    "h2",
    {},
    "Strongest links ",
    element("span", {class: "av-axes"}, `between ${are}, in this head`),
  );
  const bars = cells
    .filter(({weight}) => weight !== 0)
    .map(({query, key, weight}) =>
      bar(
        view,
        weight,
        cells[0].weight,
        "av-accent",
        element(
          "button",
          {type: "button", class: "av-pair", onclick: () => view.pin({query, key}, {pair: true})},
          token(stream.queries, query, "av-query"),
          " \u2192 ",
          token(stream.keys, key, "av-keys"),
        ),
      ),
    );
  const {pair} = view.now;
  const sums =
    head instanceof MixedHead && pair
      ? `the row of ${stream.queries.names[pair.query]}: ${rowSums(head, pair.query, columns)}`
      : "";
  const rest = head instanceof MixedHead ? sums : restOf(view, head);
  const left = words.length ? leftOutOf(view.now, head, words[words.length - 1].weight) : "";
  return element(
    "div",
    {class: "av-list av-links"},
    element("header", {}, title),
    element("ol", {}, ...bars),
    rest || left ? element("p", {class: "av-quiet"}, [rest, left].filter(Boolean).join(" ")) : null,
  );
}

/** Whether an axis has words alone. @param {Pick<Axis, "place" | "named">} axis @param {string} stream */
function isText({place, named}, stream) {
  return !place && !named && !/^(picture|sound)/.test(stream);
}

/** That words' links to themselves aren't listed, where the strongest would be.
 * @param {Pick<BarsView["now"], "rows" | "columns" | "stream">} drawn @param {AnyHead} head
 * @param {number} least  of the weights that are listed */
export function leftOutOf({rows, columns, stream: {own, queries, name}}, head, least) {
  if (!own) return "";
  const shown = new Set(columns);
  const alone = [...rows].filter((place) => queries.words[place] && shown.has(place) && !head.isBlocked(place, place));
  const most = Math.max(0, ...alone.map((place) => Math.abs(head.at(place, place))));
  if (most <= Math.abs(least)) return "";
  const told = head instanceof MixedHead ? significant(most) : weightText(most);
  return `Left out: each ${isText(queries, name) ? "word" : "position"}\u2019s link to itself, up to ${told}.`;
}

/** What the words' rows give to what stands for nothing in the text, as one number.
 * @param {BarsView} view @param {AnyHead} head */
function restOf({now: {rows, columns, stream}}, head) {
  const {words} = stream.queries;
  const looking = rows.filter((query) => words[query] && (!stream.name.startsWith("decoder") || query > 0));
  const special = columns.filter((key) => stream.keys.dimmed[key]);
  const keys = special.length ? special : stream.name.startsWith("decoder") ? columns.subarray(0, 1) : special;
  if (looking.length === 0 || keys.length === 0) return "";
  let sum = 0;
  for (const query of looking) for (const key of keys) sum += head.at(query, key);
  const names = [...new Set([...keys].map((key) => stream.keys.spellings[key].text))];
  return restWords(names, special.length > 0, sum / looking.length);
}

/** @param {string[]} names  of the tokens that stand for nothing in the text, or of the first one
 * @param {boolean} special @param {number} share */
export function restWords(names, special, share) {
  const listed = names.slice(0, 3).join(" and ");
  const who = special
    ? `${listed} ${names.length > 1 ? "take" : "takes"}`
    : `The first token, \u201c${listed}\u201d, takes`;
  return `${who} ${Math.round(100 * share)} % of the average word\u2019s row.`;
}

/** The heaviest of some places; `weightAt` gives null for a blocked one.
 * @param {Places} places @param {(place: number) => number | null} weightAt @returns {Summary} */
function summed(places, weightAt) {
  const heaviest = new Strongest(MOST);
  let [open, total] = [0, 0];
  for (const place of places) {
    const weight = weightAt(place);
    if (weight === null) continue;
    open += 1;
    total += Math.abs(weight);
    heaviest.add(place, 0, Math.abs(weight));
  }
  const top = heaviest.sorted().map(({query}) => ({place: query, weight: weightAt(query) ?? 0}));
  return {top, open, blocked: places.length - open, total};
}

/** @param {BarsView} view @param {HTMLElement} title @param {HTMLElement | null} note @param {Summary} all
 * @param {Axis} axis @param {string} role */
function list(view, title, note, {top, open, blocked, total}, axis, role) {
  const rest = open - top.length;
  const above = top.reduce((sum, {weight}) => sum + Math.abs(weight), 0);
  const others =
    rest > 0
      ? `${rest} more, together ${view.now.stream.signed ? `size ${significant(Math.max(0, total - above))}` : weightText(Math.max(0, total - above))}`
      : null;
  const foot = [others, blocked ? `${blocked} blocked` : null].filter(Boolean).join(" \u00b7 ");
  return element(
    "div",
    {class: "av-list"},
    element("header", {}, title, note),
    element("ol", {}, ...top.map(({place, weight}) => bar(view, weight, top[0].weight, role, token(axis, place, "")))),
    foot ? element("p", {class: "av-quiet"}, foot) : null,
  );
}

/** @param {BarsView} view
 * @param {number} weight
 * @param {number} most
 * @param {string} role
 * @param {HTMLElement} label */
function bar(view, weight, most, role, label) {
  const {head, scale} = view.now;
  const signed = head instanceof MixedHead && head.signed;
  const sign = weight < 0 ? "av-minus" : "av-plus";
  const fill = element("span", {class: `av-fill ${signed ? sign : role}-fill`});
  fill.style.width = `${100 * lengthOf(scale, weight, most)}%`;
  return element(
    "li",
    {},
    label,
    element("span", {class: "av-track"}, fill),
    element("span", {class: "av-number"}, head instanceof MixedHead ? significant(weight) : weightText(weight)),
  );
}

/** @param {Axis} axis @param {number} place @param {string} role */
function token(axis, place, role) {
  return element(
    "bdi",
    {class: `av-word ${role}`, title: axis.spellings[place].mark + axis.spellings[place].text},
    axis.names[place],
  );
}
