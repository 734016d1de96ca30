// Two heads in a Streamlit page: both texts, a query's row up for the one and down for the other, and the map of all
// heads. All rows are here, so that another query is shown at once; its sentence comes with it, written in Python.

import {createDistances} from "./distances.js";
import {PairStrip} from "./pairs.js";
import {PairedPictures} from "./pictures.js";
import {largestKey, peekPhrase, readHeadRows} from "./peeking.js";
import {showChanges, textLines} from "./lines.js";
import {element} from "../parts/element.js";
import {hearLatest, mountComponent, sendChoice, takesChoice, watchSize} from "../hosts/component.js";
import {weightText} from "../data/scale.js";
import {numbersAt, readPayload} from "../data/payload.js";

/** @import {DistanceCell, Distances} from "./distances.js"
 * @import {HeadRows} from "./peeking.js"
 * @import {Place} from "../data/payload.js"
 * @import {Mounted} from "../hosts/component.js"
 * @import {Message, Mounting} from "../hosts/hosting.js" */

/** A sentence in pieces with their roles. @typedef {[text: string, role: string][]} Phrase */
/** Two keys, of the first text and of the second, by their places; null for none.
 * @typedef {[one: number | null, other: number | null]} KeyPlaces */
/** A token in both texts, null in one that lacks it. @typedef {[one: string | null, other: string | null]} Paired */

/**
 * What stands before the rows, as `pack_compare` in compare_payload.py writes it.
 * @typedef {object} CompareHeader
 * @property {{name: string, text: [text: string, change?: string, number?: string][]}[]} sides
 * @property {Paired[] | null} queries  null where they are the keys
 * @property {Paired[]} keys
 * @property {import("./pictures.js").ComparedPicture[] | null} pictures  both sides' images
 * @property {number[]} rows  the places of the queries whose rows are here
 * @property {{parts: Phrase, keys: KeyPlaces}[]} claims  a row's sentence; none for images
 * @property {string} where  the second side, as a sentence about it begins
 * @property {[one: Place, other: Place]} planes
 * @property {boolean} signed  whether weights have signs
 * @property {boolean} turned  whether the text runs from right to left
 * @property {boolean} predicts  whether a next word comes
 * @property {import("./distances.js").PackedDistances | null} map
 */

/** @typedef {Message & {phrase?: Phrase, keys?: KeyPlaces, aside?: string, bytes?: string,
 *   largest?: [layer: number, head: number] | null}} CompareMessage */

/** The rows of both heads, one behind the other. @typedef {[one: Float32Array, other: Float32Array]} Rows */

/** What is on the page: `shown` is the query that the page was told of or the reader chose, `pointed` one that is only
 * pointed at, `bars` a key whose bars are; `said` is the page's own sentence of it. `heads` has the chosen query's rows of
 * all heads, `peeked` the head of the map that is pointed at, `of` the one whose rows are here.
 * @typedef {Mounted & {header: CompareHeader | null, rows: Rows, shown: number, pointed: number | null, bars: number | null,
 *   heads: HeadRows | null, peeked: DistanceCell | null, of: {layer: number, head: number} | null,
 *   said: {phrase: Phrase, keys: KeyPlaces} | null, next: HTMLElement, texts: HTMLElement, claim: HTMLElement,
 *   aside: HTMLElement, pairs: PairStrip, pictures: PairedPictures, distances: Distances}} Compare */

// How large the sentence may be, in pixels: the first that fits.
const CLAIM_SIZES = [28, 25, 22, 19, 17, 15, 13];

/** @param {Mounting} mounting */
export default function compareComponent(mounting) {
  const draw = (/** @type {Compare} */ compare) => {
    drawRow(compare);
    compare.distances.fit();
  };
  return mountComponent(mounting, {selector: ".av-compare", create: createCompare, load, draw, hear: follow});
}

/** @param {Mounted} base @returns {Compare} */
function createCompare(base) {
  const next = element("p", {class: "av-nextword", "data-testid": "compare-next", hidden: true});
  const texts = element("ol", {class: "av-texts"});
  const claim = element("h1", {class: "av-turn", "data-testid": "compare-claim", "aria-live": "polite"});
  const aside = element("p", {class: "av-rank"});
  const point = (/** @type {number | null} */ query, /** @type {number | null} */ key) => {
    Object.assign(compare, {pointed: query, bars: key});
    drawRow(compare);
  };
  const hearing = {point, choose: (/** @type {number} */ query) => chooseQuery(compare, query)};
  const [pairs, pictures] = [new PairStrip(hearing, base.signal), new PairedPictures(hearing)];
  const distances = createDistances(
    (layer, head) => chooseHead(compare, layer, head),
    (cell) => {
      compare.peeked = cell;
      drawRow(compare);
    },
  );
  /** @type {Compare} */
  const compare = {
    ...{
      ...base,
      header: null,
      rows: [new Float32Array(0), new Float32Array(0)],
      shown: 0,
      pointed: null,
      bars: null,
      heads: null,
      peeked: null,
      of: null,
      said: null,
    },
    ...{next, texts, claim, aside, pairs, pictures, distances},
  };
  const body = element("div", {class: "av-compare-body"}, pictures.node, pairs.node, distances.node);
  base.root.replaceChildren(next, texts, claim, aside, body);
  watchSize(compare, () => {
    fitClaim(claim);
    distances.fit();
    if (compare.header?.pictures) drawRow(compare);
  });
  return compare;
}

/** @param {Compare} compare @param {Uint8Array} bytes */
function load(compare, bytes) {
  /** @type {import("../data/payload.js").Payload<CompareHeader>} */
  const payload = readPayload(bytes);
  const {header} = payload;
  const [one, other] = header.planes.map((place) => numbersAt(payload, place, Float32Array));
  Object.assign(compare, {
    header,
    rows: [one, other],
    pointed: null,
    bars: null,
    said: null,
    heads: null,
    peeked: null,
  });
  compare.next.hidden = !header.predicts;
  compare.next.textContent = "next word: …";
  compare.texts.replaceChildren(...textLines(header.sides));
  showChanges(compare.texts);
  compare.pairs.build(header);
  const [picture] = header.pictures ?? [];
  compare.root.classList.toggle("av-pictured", Boolean(picture));
  compare.pairs.node.hidden = Boolean(picture) && !picture.joint;
  void compare.pictures.load(payload).then((isLoaded) => isLoaded && drawRow(compare));
  compare.distances.build(header.map);
  hearLatest(compare, follow);
  hearLatest(compare, follow, "next");
  hearLatest(compare, follow, "peek");
}

/** @param {Compare} compare @param {Message} heard */
function follow(compare, heard) {
  const message = /** @type {CompareMessage} */ (heard);
  const {about, phrase = [], query, keys = [null, null], layer, head} = message;
  if (!compare.header) return;
  if (about === "next") {
    writePhrase(compare.next, phrase);
    compare.next.hidden = !phrase.length;
    return;
  }
  if (about === "peek") {
    compare.heads = readHeadRows(message.bytes ?? "", query ?? 0, compare.header.keys.length);
    return;
  }
  if (!takesChoice(compare, message)) return;
  compare.root.removeAttribute("data-waits");
  const moved = query !== compare.shown || !compare.said;
  Object.assign(compare, {shown: query ?? 0, said: {phrase, keys}, of: {layer, head}});
  writeAside(compare, message);
  compare.distances.mark(layer, head);
  drawRow(compare);
  if (!moved) return;
  const named = keys.flatMap((key) => key ?? []);
  compare.pairs.reveal(compare.shown, named.length ? named : [compare.shown]);
}

/** @param {Compare} compare @param {CompareMessage} message */
function writeAside(compare, {aside = "", largest}) {
  const press = () => largest && chooseHead(compare, ...largest);
  const button = element("button", {type: "button", onclick: press}, largest ? largest.join("\u00b7") : "");
  compare.aside.replaceChildren(aside, ...(largest ? [" \u00b7 largest: ", button] : []));
}

/** Show the row of the query that is pointed at, else of the chosen one; or that one's in the head that is pointed at.
 * @param {Compare} compare */
function drawRow(compare) {
  const {header, shown, pointed, bars, claim, pairs, pictures} = compare;
  if (!header) return;
  const peeked = peekedRow(compare);
  compare.root.toggleAttribute("data-peeks", Boolean(peeked));
  const query = peeked ? shown : (pointed ?? shown);
  const own = peeked ?? ownRow(compare, query);
  if (!own) return;
  const row = {one: own.one, other: own.other, query, shown, keys: own.keys};
  const phrase = pictures.tell(header, row) ?? own.phrase;
  writePhrase(claim, bars === null ? phrase : pairPhrase(header, query, bars, [own.one[bars], own.other[bars]]));
  fitClaim(claim);
  pairs.draw(row);
  pictures.draw(row);
}

/** A query's row in both heads, with its sentence. @param {Compare} compare @param {number} query */
function ownRow({header, rows, shown, said}, query) {
  const at = header ? header.rows.indexOf(query) : -1;
  if (!header || at < 0) return null;
  const claimed = header.claims[at] ?? {parts: [], keys: [null, null]};
  const {phrase, keys} = query === shown && said ? said : {phrase: claimed.parts, keys: claimed.keys};
  const width = header.keys.length;
  const [one, other] = rows.map((row) => row.subarray(at * width, (at + 1) * width));
  return {one, other, phrase, keys};
}

/** The chosen query's row in the heads that are pointed at on the map, with what they look at most.
 * @param {Compare} compare */
function peekedRow({header, heads, peeked, shown, rows, of}) {
  if (!header || !heads || !peeked || heads.query !== shown) return null;
  if (peeked.layer === of?.layer && peeked.head === of.head) return null;
  const [one, other] = heads.rowsOf(peeked.place);
  const at = header.rows.indexOf(shown) * header.keys.length;
  // What no head may look at is blocked in this one too.
  for (const [side, row] of [one, other].entries())
    row.forEach((weight, key) => {
      if (weight === 0 && rows[side][at + key] === Infinity) row[key] = Infinity;
    });
  const [first, second] = [one, other].map(largestKey);
  const phrase = peekPhrase(header, shown, [first, second], [one[first], other[second]]);
  return {one, other, phrase, keys: /** @type {KeyPlaces} */ ([first, second])};
}

/** What both heads give one key. @param {CompareHeader} header @param {number} query @param {number} key
 * @param {number[]} weights @returns {Phrase} */
function pairPhrase({queries, keys}, query, key, weights) {
  const [asks, looked] = [(queries ?? keys)[query], keys[key]].map(([one, other]) => one ?? other ?? "");
  /** @type {Phrase} */
  const numbers = weights.flatMap((weight, side) => [
    [side ? ", " : ": ", ""],
    Number.isFinite(weight) ? [weightText(weight), "number"] : [weight === Infinity ? "blocked" : "absent", ""],
    [` in ${side + 1}`, ""],
  ]);
  return [[asks, "query"], [" \u2192 ", ""], [looked, "key"], ...numbers];
}

/** Fit a sentence into its place, so that nothing below it moves. @param {HTMLElement} claim */
function fitClaim(claim) {
  for (const size of CLAIM_SIZES) {
    claim.style.fontSize = `${size}px`;
    if (claim.scrollHeight <= claim.clientHeight) return;
  }
}

/** @param {HTMLElement} node @param {Phrase} phrase */
function writePhrase(node, phrase) {
  node.replaceChildren(
    ...phrase.map(([text, role]) => (role ? element("bdi", {class: `av-said-${role}`}, text) : text)),
  );
}

/** @param {Compare} compare @param {number} query */
function chooseQuery(compare, query) {
  const {header} = compare;
  if (!header) return;
  const at = header.rows.indexOf(query);
  Object.assign(compare, {pointed: null, ...(at < 0 ? {} : {shown: query, said: null})});
  drawRow(compare);
  const row = ownRow(compare, query);
  sendChoice(compare, {query, key: row ? (row.keys[0] ?? row.keys[1] ?? largestKey(row.one)) : 0});
}

/** @param {Compare} compare @param {number} layer @param {number} head */
function chooseHead(compare, layer, head) {
  compare.aside.textContent = `Reading layer ${layer}, head ${head} …`;
  compare.root.toggleAttribute("data-waits", true);
  compare.distances.mark(layer, head);
  sendChoice(compare, {layer, head});
}
