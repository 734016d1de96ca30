// The trace in the browser: its streams and tokens at once, the weights of a layer when somebody asks for them.

import {forgetOldest, headsKept} from "./computed.js";
import {Head, belowCut} from "./head.js";
import {readMixed, readSmall} from "./mixing.js";
import {layerNumber, placed} from "../heads/numbers.js";
import {readLayer, readMask, readPayload, weightValues} from "./payload.js";
import {rankHeads} from "../heads/ranking.js";
import {hasNumbers, readHead, readMaps} from "./terms.js";
import {LaterPictures, codeValues, readThumbnails} from "./thumbnail.js";
import {readAxis} from "./tokens.js";

/** @import {HeadMap} from "./blockmap.js"
 * @import {ComputedHead} from "./computed.js"
 * @import {ChannelHeader, MixedHead, PackedMixing, SmallMixedHead} from "./mixing.js"
 * @import {BitMask, CausalMask, Header, PackedStream, Payload} from "./payload.js"
 * @import {RankedHead} from "../heads/ranking.js"
 * @import {HeadHeader} from "./terms.js"
 * @import {PackedPictures, Thumbnail} from "./thumbnail.js"
 * @import {Axis} from "./tokens.js" */

/** One head of a trace, by number; as a choice, with the pair of tokens that is meant in it, null for the head's own, and
 * what is shown of a layer without a softmax.
 * @typedef {{stream: string, layer: number, head: number, query?: number | null, key?: number | null,
 *   arrived?: boolean, single?: boolean}} HeadChoice */

/** One kind of attention; `own` where the queries are the keys.
 * @typedef {Omit<PackedStream, "queries" | "keys"> & {queries: Axis, keys: Axis, own: boolean}} Stream */

/** A head as it is drawn: all of it, or of a long text as it is computed, or at first as a small picture of it.
 * @typedef {Head | ComputedHead | MixedHead} AnyHead
 * @typedef {AnyHead | HeadMap | Thumbnail} Picture */

/** Two tokens whose heads are to be ranked, and the heads that link them most, as a host found them out.
 * @typedef {{of: string, stream: string, query: number, key: number}} AskedPair
 * @typedef {AskedPair & {ranked: RankedHead[]}} Ranking */

// How many numbers of heads without a softmax that a host handed over are kept, four bytes each.
const MOST_MIXED_KEPT = 24_000_000;

/** All streams of a trace. */
export class Recording {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    /** @type {Payload<Header>} */
    this.payload = readPayload(bytes);
    this.header = this.payload.header;
    const axes = this.header.axes.map(readAxis);
    /** @type {Stream[]} */
    this.streams = this.header.streams.map((one) => ({
      ...one,
      queries: axes[one.queries],
      keys: axes[one.keys],
      own: one.queries === one.keys,
    }));
    this.values = weightValues(this.header);
    /** @type {Map<string, {ready: (Head | MixedHead)[] | null, promise: Promise<(Head | MixedHead)[]>}>} */
    this.layers = new Map();
    /** @type {Map<number, Promise<Uint8Array>>} */
    this.masks = new Map();
    this.codes = this.header.long ? codeValues(this.header.long) : this.values;
    /** Asks a host for a ranking; such a host also hands over heads. @type {((pair: AskedPair) => void) | null} */
    this.ask = null;
    /** @type {Ranking | null} */
    this.ranking = null;
    /** @type {Map<string, (Thumbnail | SmallMixedHead)[]>} */
    this.thumbnails = new Map();
    /** The channels, or heads of layers that come in small, that were handed over last. @type {Map<string, MixedHead>} */
    this.channels = new Map();
    /** @type {Map<string, ComputedHead>} */
    this.computed = new Map();
    /** The head whose maps came last, ahead of its numbers. @type {{place: string, maps: HeadMap} | null} */
    this.ahead = null;
    this.later = new LaterPictures();
  }

  /** @param {string | undefined} name */
  stream(name) {
    return this.streams.find((one) => one.name === name) ?? this.streams[0];
  }

  /** What a head is called; where a reading takes a layer's heads together, by that reading.
   * @param {Pick<Stream, "layers">} stream @param {number} layer  its place among those here @param {number} head */
  headName({layers}, layer, head, withKind = true) {
    const [{reading}, {kind, per}] = [this.header, layers[layer]];
    const parts = [`Layer ${layerNumber(layers, layer)}`, ...(kind && withKind ? [kind] : [])];
    const own = per === "channel" ? "all channels" : `Head ${head}`;
    return [...parts, reading?.together && !kind ? reading.label : own].join(" \u00b7 ");
  }

  /** What a head is called in a list: "24\u00b74". @param {Pick<Stream, "layers">} stream @param {number} layer @param {number} head */
  headShort({layers}, layer, head, withKind = true) {
    const {kind, per} = layers[layer];
    const alone = per === "channel" || (this.header.reading?.together && !kind);
    const short = `${layerNumber(layers, layer)}\u00b7${head}${kind && withKind ? ` \u00b7 ${kind}` : ""}`;
    return alone ? this.headName({layers}, layer, head, withKind) : short;
  }

  /** The nearest head that there is to the one asked for; anything may be asked for.
   * @param {{stream?: string, layer?: unknown, head?: unknown}} wanted @returns {HeadChoice} */
  nearest({stream, layer, head}) {
    const {name, layers} = this.stream(stream);
    const inside = (/** @type {unknown} */ number, /** @type {number} */ count) =>
      Math.min(Math.max(Math.trunc(Number(number)) || 0, 0), count - 1);
    const nearestLayer = inside(layer, layers.length);
    const {heads, channels} = layers[nearestLayer];
    return {stream: name, layer: nearestLayer, head: inside(head, channels || heads)};
  }

  /** Read a layer's weights, once. @param {string} name @param {number} layer */
  load(name, layer) {
    const place = `${name} ${layer}`;
    const before = this.layers.get(place);
    if (before) return before.promise;
    const entry = {
      ready: /** @type {(Head | MixedHead)[] | null} */ (null),
      promise: this.read(this.stream(name), layer),
    };
    entry.promise.then((heads) => {
      entry.ready = heads;
    });
    this.layers.set(place, entry);
    return entry.promise;
  }

  /** Whether a layer has been read. @param {string} name @param {number} layer */
  isReady(name, layer) {
    return Boolean(this.layers.get(`${name} ${layer}`)?.ready);
  }

  /** A head that has been read, else null. @param {HeadChoice} choice @returns {AnyHead | null} */
  head({stream, layer, head}) {
    if (this.stream(stream).layers[layer].channels) return this.layers.get(`${stream} ${layer}`)?.ready?.[0] ?? null;
    const place = `${stream} ${layer} ${head}`;
    const ready = this.layers.get(`${stream} ${layer}`)?.ready?.[head];
    return this.computed.get(place) ?? ready ?? this.channels.get(place) ?? null;
  }

  /** The matrix of one channel, if a host handed it over; elsewhere, of a layer's heads, null.
   * @param {HeadChoice} choice @returns {MixedHead | null} */
  channel({stream, layer, head}) {
    return this.channels.get(`${stream} ${layer} ${head}`) ?? null;
  }

  /** Take a channel that a host hands over. @param {Payload<HeadHeader & ChannelHeader>} payload */
  async receiveChannel({header, body}) {
    if (header.of !== this.header.channels) return false;
    const {stream, layer, head} = placed(this, header.channel);
    const place = this.stream(stream);
    const blocked = place.layers[layer].blocked ?? [];
    const own = blocked.length > 1 ? [blocked[head]] : blocked;
    const masks = await Promise.all(own.map((mask) => this.mask(mask)));
    const [found] = await readMixed({body}, {...header, heads: 1}, masks, place.queries.count, place.keys.count);
    this.channels.delete(`${stream} ${layer} ${head}`); // the one that came last goes last
    this.channels.set(`${stream} ${layer} ${head}`, found);
    for (const first of this.channels.keys()) {
      if (this.channels.size * found.cells.length <= Math.max(MOST_MIXED_KEPT, found.cells.length)) break;
      this.channels.delete(first);
    }
    return true;
  }

  /** What can be drawn of a head in small: of a long text a picture, else the head itself; null before it is read.
   * @param {HeadChoice} choice @returns {Picture | null} */
  picture({stream, layer, head}) {
    return this.thumbnails.get(`${stream} ${layer}`)?.[head] ?? this.head({stream, layer, head});
  }

  /** The maps of a head whose numbers are on their way, if they came. @param {HeadChoice} choice */
  maps({stream, layer, head}) {
    return this.ahead?.place === `${stream} ${layer} ${head}` ? this.ahead.maps : null;
  }

  /** Whether the head is in these bytes, so that nobody has to be asked for it. @param {HeadChoice} choice */
  has({stream, layer, head}) {
    const {signed, layers} = this.stream(stream);
    if (signed) return !layers[layer].small;
    return !this.header.long || Object.hasOwn(layers[layer].terms, head);
  }

  /** The head itself, and where nobody else can rank them, the others of its layer that are in these bytes.
   * @param {HeadChoice} choice */
  headsToRead({stream, layer, head}) {
    const {terms = {}} = this.stream(stream).layers[layer];
    const others = Object.keys(terms).map(Number);
    const count = head in terms ? headsKept(terms[head]) : 1;
    return this.ask ? [head] : [head, ...others.filter((one) => one !== head).slice(0, count - 1)];
  }

  /** Read a head of a long text, where it is in these bytes; tells whether it was. @param {HeadChoice} choice */
  async loadHead({stream, layer, head}) {
    const before = this.computed.get(`${stream} ${layer} ${head}`);
    if (before) this.keep({stream, layer, head}, before);
    if (
      this.stream(stream).signed ||
      this.head({stream, layer, head}) ||
      !this.header.long ||
      !this.has({stream, layer, head})
    )
      return false;
    const entry = this.stream(stream).layers[layer].terms[head];
    this.keep({stream, layer, head}, await readHead(this.payload, entry, this.header.masks, this.values));
    return true;
  }

  /** Take a head, or the beginning of its bytes, that the host hands over; tells whether it is one of this trace.
   * @param {Uint8Array} bytes */
  async receive(bytes) {
    /** @type {Payload<HeadHeader & ChannelHeader & PackedPictures>} */
    const {header, body} = readPayload(bytes);
    if (header.channel) return this.receiveChannel({header, body});
    if (header.of !== this.header.long?.id) return false;
    if (header.thumbnails) {
      this.later.take(placed(this, header), {header, body});
      return false;
    }
    const at = placed(this, header);
    if (this.head(at)) return true;
    const maps = this.maps(at) ?? (await readMaps({body}, header.entry, header.masks, this.values));
    if (hasNumbers(header, body)) this.keep(at, await readHead({body}, header.entry, header.masks, this.values, maps));
    else this.ahead = {place: `${at.stream} ${at.layer} ${at.head}`, maps};
    return true;
  }

  /** Take the heads that link a pair of a long text; tells whether they are of this one. @param {Ranking} ranking */
  takeRanking(ranking) {
    if (ranking.of !== this.header.long?.id) return false;
    this.ranking = ranking;
    return true;
  }

  /** The heads that link a pair most, heaviest first, and whether all heads were asked: of a long text as the host
   * found them, or of those that are here.
   * @param {string} stream @param {number} query @param {number} key */
  rank(stream, query, key) {
    const found = this.ranking;
    if (found && found.stream === stream && found.query === query && found.key === key)
      return {ranked: found.ranked, complete: true};
    return rankHeads(this.stream(stream).layers, (layer, head) => this.head({stream, layer, head}), query, key);
  }

  /** @param {HeadChoice} choice @param {ComputedHead} found */
  keep({stream, layer, head}, found) {
    const place = `${stream} ${layer} ${head}`;
    this.computed.delete(place); // the one asked for last goes last
    this.computed.set(place, found);
    forgetOldest(this.computed, found);
  }

  /** @param {Stream} stream @param {number} number */
  async read(stream, number) {
    if (this.header.long && !stream.signed) return this.readPictures(stream, number);
    const {heads, blocked, left} = stream.layers[number];
    const [queries, keys] = [stream.queries.count, stream.keys.count];
    const reading = Promise.all((blocked ?? []).map((mask) => this.mask(mask)));
    if (stream.signed) {
      const mixing = /** @type {PackedMixing & {heads: number}} */ (stream.layers[number]);
      if (mixing.small) this.thumbnails.set(`${stream.name} ${number}`, await readSmall(this.payload, mixing.small));
      return readMixed(this.payload, mixing, await reading, queries, keys);
    }
    const [{weights, rows}, masks, below] = await Promise.all([
      readLayer(this.payload, stream.layers[number]),
      reading,
      Promise.all((left ?? []).map(async ([mask, at]) => belowCut(await this.mask(mask), this.payload, at))),
    ]);
    return Array.from(
      {length: heads},
      (_, head) =>
        new Head(
          weights.subarray(head * queries * keys, (head + 1) * queries * keys),
          rows.subarray(head * queries, (head + 1) * queries),
          masks[masks.length > 1 ? head : 0] ?? null,
          queries,
          keys,
          this.values,
          below[Math.floor((head * below.length) / heads)] ?? null,
        ),
    );
  }

  /** @param {Stream} stream @param {number} number */
  async readPictures({name, layers, side, sampled, queries, keys}, number) {
    const layer = layers[number];
    const [down, across] = side;
    const counts = {down, across, queries: queries.count, keys: keys.count, sampled};
    const packed = layer.thumbnails ? {header: layer, body: this.payload.body} : await this.later.wait(name, number);
    this.thumbnails.set(`${name} ${number}`, await readThumbnails(packed, layer.heads, counts, this.codes));
    return [];
  }

  /** @param {number} number */
  mask(number) {
    const packed = /** @type {CausalMask | BitMask} */ (this.header.masks[number]);
    const mask = this.masks.get(number) ?? readMask(this.payload, packed);
    this.masks.set(number, mask);
    return mask;
  }
}
