// All heads of a stream, ranked by one weight: how much a query looks at a key.

/**
 * The heads that may look from `query` to `key`, heaviest first; of equals the lower layer and head first.
 *
 * `headAt(layer, head)` gives a head, or null while its layer is not read yet; `complete` tells whether all were there.
 */
export function rankHeads(layers, headAt, query, key) {
  const all = layers.flatMap(({heads}, layer) =>
    Array.from({length: heads}, (_, number) => ({layer, number, head: headAt(layer, number)})),
  );
  const ranked = all
    .filter(({head}) => head !== null && !head.isBlocked(query, key))
    .map(({layer, number, head}) => ({layer, head: number, weight: head.at(query, key)}))
    .sort((a, b) => b.weight - a.weight || a.layer - b.layer || a.head - b.head);
  return {ranked, complete: all.every(({head}) => head !== null)};
}
