// The trace in the browser: its streams and tokens at once, the weights of a layer when somebody asks for them.

import {readLayer, readMask, readPayload, weightValues} from "./payload.js";
import {readAxis} from "./tokens.js";

/**
 * @import {Header, PackedLayer, Payload} from "./payload.js"
 * @import {Axis} from "./tokens.js"
 */

/**
 * Positions along an axis that are on the screen.
 * @typedef {Int32Array} Places
 */

/**
 * One head of a trace, by number.
 * @typedef {{stream: string, layer: number, head: number}} HeadChoice
 */

/**
 * One cell of a head.
 * @typedef {{query: number, key: number, weight: number}} Cell
 */

/**
 * One kind of attention; `own` where the queries are the keys.
 * @typedef {{name: string, layers: PackedLayer[], queries: Axis, keys: Axis, own: boolean}} Stream
 */

/** What one head computed. Weights lie key by key, as places in `values`: `values[weights[key * queries + query]]`. */
export class Head {
  /**
   * @param {Uint16Array} weights
   * @param {ArrayLike<number>} sums  of each query's row
   * @param {Uint8Array | null} blocked  1 where a query may not look, key by key
   * @param {number} queries
   * @param {number} keys
   * @param {ArrayLike<number>} values  the weight that each number stands for
   */
  constructor(weights, sums, blocked, queries, keys, values) {
    this.weights = weights;
    this.sums = sums;
    this.blocked = blocked;
    this.queries = queries;
    this.keys = keys;
    this.values = values;
  }

  /**
   * @param {number} query
   * @param {number} key
   */
  at(query, key) {
    return this.values[this.weights[key * this.queries + query]];
  }

  /**
   * @param {number} query
   * @param {number} key
   */
  isBlocked(query, key) {
    return this.blocked !== null && this.blocked[key * this.queries + query] === 1;
  }

  /**
   * The largest weight among some rows and columns.
   * @param {Places} rows
   * @param {Places} columns
   */
  maximum(rows, columns) {
    let most = 0;
    for (const key of columns)
      for (const query of rows) most = Math.max(most, this.weights[key * this.queries + query]);
    return this.values[most];
  }

  /**
   * The sum of a row over some columns: the exact sum where all are there, else less what is left out.
   * @param {number} query
   * @param {Places} columns
   */
  sum(query, columns) {
    if (columns.length === this.keys) return this.sums[query];
    const inSight = new Uint8Array(this.keys);
    for (const key of columns) inSight[key] = 1;
    let hidden = 0;
    for (let key = 0; key < this.keys; key++) if (!inSight[key]) hidden += this.at(query, key);
    return Math.max(0, this.sums[query] - hidden);
  }

  /**
   * The heaviest cells among some rows and columns, heaviest first.
   * @param {Places} rows
   * @param {Places} columns
   * @param {number} count
   * @param {(query: number, key: number) => boolean} accepts
   */
  strongest(rows, columns, count, accepts = () => true) {
    const tally = new Uint32Array(this.values.length);
    for (const key of columns)
      for (const query of rows) if (accepts(query, key)) tally[this.weights[key * this.queries + query]]++;
    let least = this.values.length - 1;
    for (let seen = tally[least]; seen < count && least > 1;) seen += tally[--least];
    /** @type {Cell[]} */
    const cells = [];
    for (const key of columns)
      for (const query of rows)
        if (this.weights[key * this.queries + query] >= least && accepts(query, key))
          cells.push({query, key, weight: this.at(query, key)});
    return cells.sort((a, b) => b.weight - a.weight || a.query - b.query || a.key - b.key).slice(0, count);
  }
}

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
    /** @type {Map<string, {ready: Head[] | null, promise: Promise<Head[]>}>} */
    this.layers = new Map();
    /** @type {Map<number, Promise<Uint8Array>>} */
    this.masks = new Map();
  }

  /** @param {string | undefined} name */
  stream(name) {
    return this.streams.find((one) => one.name === name) ?? this.streams[0];
  }

  /**
   * What a head is called; where a reading takes a layer's heads together, by that reading.
   * @param {number} layer
   * @param {number} head
   */
  headName(layer, head) {
    const {reading} = this.header;
    return `Layer ${layer} \u00b7 ${reading?.together ? reading.label : `Head ${head}`}`;
  }

  /**
   * The nearest head that there is to the one asked for; anything may be asked for.
   * @param {{stream?: string, layer?: unknown, head?: unknown}} wanted
   * @returns {HeadChoice}
   */
  nearest({stream, layer, head}) {
    const {name, layers} = this.stream(stream);
    const inside = (/** @type {unknown} */ number, /** @type {number} */ count) =>
      Math.min(Math.max(Math.trunc(Number(number)) || 0, 0), count - 1);
    const nearestLayer = inside(layer, layers.length);
    return {stream: name, layer: nearestLayer, head: inside(head, layers[nearestLayer].heads)};
  }

  /**
   * Read a layer's weights, once.
   * @param {string} name
   * @param {number} layer
   */
  load(name, layer) {
    const place = `${name} ${layer}`;
    const before = this.layers.get(place);
    if (before) return before.promise;
    const entry = {ready: /** @type {Head[] | null} */ (null), promise: this.read(this.stream(name), layer)};
    entry.promise.then((heads) => {
      entry.ready = heads;
    });
    this.layers.set(place, entry);
    return entry.promise;
  }

  /**
   * Whether a layer has been read.
   * @param {string} name
   * @param {number} layer
   */
  isReady(name, layer) {
    return Boolean(this.layers.get(`${name} ${layer}`)?.ready);
  }

  /**
   * A head whose layer has been read, else null.
   * @param {HeadChoice} choice
   */
  head({stream, layer, head}) {
    return this.layers.get(`${stream} ${layer}`)?.ready?.[head] ?? null;
  }

  /**
   * @param {Stream} stream
   * @param {number} number
   */
  async read(stream, number) {
    const {heads, blocked} = stream.layers[number];
    const [{weights, rows}, masks] = await Promise.all([
      readLayer(this.payload, stream.layers[number]),
      Promise.all((blocked ?? []).map((mask) => this.mask(mask))),
    ]);
    const [queries, keys] = [stream.queries.count, stream.keys.count];
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
        ),
    );
  }

  /** @param {number} number */
  mask(number) {
    const mask = this.masks.get(number) ?? readMask(this.payload, this.header.masks[number]);
    this.masks.set(number, mask);
    return mask;
  }
}
