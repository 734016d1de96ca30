// Reading the bytes that Python packed: length, JSON header, deflated planes (see payload.py for the layout).

/** The header, and the bytes behind it. */
export function readPayload(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return {header, body: bytes.subarray(4 + length)};
}

/** One plane, inflated. */
export async function readPlane({body}, [offset, length]) {
  const stream = new Blob([body.slice(offset, offset + length)])
    .stream()
    .pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** One layer: all weights as whole numbers (head, key, query), and what each row sums to (head, query). */
export async function readLayer(payload, {high, low, sums}) {
  const [upper, lower, total] = await Promise.all([high, low, sums].map((place) => readPlane(payload, place)));
  const weights = new Uint16Array(upper.length);
  for (let i = 0; i < upper.length; i++) weights[i] = (upper[i] << 4) | ((lower[i >> 1] >> ((i & 1) << 2)) & 15);
  const rows = new Float32Array(total.length / 2);
  for (let i = 0; i < rows.length; i++) rows[i] = (total[2 * i] | (total[2 * i + 1] << 8)) / payload.header.sum_steps;
  return {weights, rows};
}

/** The weight that each whole number stands for: the middle of an interval; 0 and 1 have numbers of their own. */
export function weightValues({levels}) {
  const values = Float64Array.from({length: levels + 2}, (_, number) => (number - 0.5) / levels);
  values[0] = 0;
  // What is nearer to 0 than to this interval's middle was sent as 0.
  values[1] = 0.75 / levels;
  values[levels + 1] = 1;
  return values;
}

/** One pattern of blocked cells (key, query): 1 where a query may not look. */
export async function readMask(payload, {kind, queries, keys, at}) {
  const blocked = new Uint8Array(queries * keys);
  if (kind === "causal") {
    for (let key = 0; key < keys; key++)
      for (let query = 0; query < Math.min(queries, key - (keys - queries)); query++)
        blocked[key * queries + query] = 1;
    return blocked;
  }
  const bits = await readPlane(payload, at);
  for (let i = 0; i < blocked.length; i++) blocked[i] = (bits[i >> 3] >> (i & 7)) & 1;
  return blocked;
}
