// The trace in the browser: its streams and tokens at once, the weights of a layer when somebody asks for them.

import {readLayer, readMask, readPayload, weightValues} from "./payload.js";
import {readAxis} from "./tokens.js";

/** What one head computed. Weights lie key by key, as places in `values`: `values[weights[key * queries + query]]`. */
export class Head {
  constructor(weights, sums, blocked, queries, keys, values) {
    Object.assign(this, {weights, sums, blocked, queries, keys, values});
  }

  at(query, key) {
    return this.values[this.weights[key * this.queries + query]];
  }

  isBlocked(query, key) {
    return this.blocked !== null && this.blocked[key * this.queries + query] === 1;
  }

  /** The largest weight among some rows and columns. */
  maximum(rows, columns) {
    let most = 0;
    for (const key of columns)
      for (const query of rows) most = Math.max(most, this.weights[key * this.queries + query]);
    return this.values[most];
  }

  /** The sum of a row over some columns: the exact sum where all are there, else less what is left out. */
  sum(query, columns) {
    if (columns.length === this.keys) return this.sums[query];
    const kept = new Uint8Array(this.keys);
    for (const key of columns) kept[key] = 1;
    let hidden = 0;
    for (let key = 0; key < this.keys; key++) if (!kept[key]) hidden += this.at(query, key);
    return Math.max(0, this.sums[query] - hidden);
  }

  /** The heaviest cells among some rows and columns, heaviest first: [{query, key, weight}]. */
  strongest(rows, columns, count, accepts = () => true) {
    const tally = new Uint32Array(this.values.length);
    for (const key of columns)
      for (const query of rows) if (accepts(query, key)) tally[this.weights[key * this.queries + query]]++;
    let least = this.values.length - 1;
    for (let seen = tally[least]; seen < count && least > 1;) seen += tally[--least];
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
  constructor(bytes) {
    this.payload = readPayload(bytes);
    this.header = this.payload.header;
    const axes = this.header.axes.map(readAxis);
    this.streams = this.header.streams.map((one) => ({
      ...one,
      queries: axes[one.queries],
      keys: axes[one.keys],
      own: one.queries === one.keys,
    }));
    this.values = weightValues(this.header);
    this.layers = new Map();
    this.masks = new Map();
  }

  stream(name) {
    return this.streams.find((one) => one.name === name) ?? this.streams[0];
  }

  /** What a head is called; where a reading takes a layer's heads together, by that reading. */
  headName(layer, head) {
    const {reading} = this.header;
    return `Layer ${layer} \u00b7 ${reading?.together ? reading.label : `Head ${head}`}`;
  }

  /** The nearest head that there is to the one asked for. */
  nearest({stream, layer, head}) {
    const {name, layers} = this.stream(stream);
    const inside = (number, count) => Math.min(Math.max(Math.trunc(Number(number)) || 0, 0), count - 1);
    const nearestLayer = inside(layer, layers.length);
    return {stream: name, layer: nearestLayer, head: inside(head, layers[nearestLayer].heads)};
  }

  /** Read a layer's weights, once. */
  load(name, layer) {
    const place = `${name} ${layer}`;
    if (!this.layers.has(place)) {
      const entry = {ready: null};
      entry.promise = this.read(this.stream(name), layer).then((heads) => (entry.ready = heads));
      this.layers.set(place, entry);
    }
    return this.layers.get(place).promise;
  }

  /** A head whose layer has been read, else null. */
  head({stream, layer, head}) {
    return this.layers.get(`${stream} ${layer}`)?.ready?.[head] ?? null;
  }

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

  mask(number) {
    if (!this.masks.has(number)) this.masks.set(number, readMask(this.payload, this.header.masks[number]));
    return this.masks.get(number);
  }
}
