// How much of a veil lies over each dot of a picture: none where the most weight is, all of it where there is none.

/** The veil's strength for each dot, 0 to 255, `size` rows of `size`: by patch, or going over from the middle of one
 * patch to that of the next, which shows no more than the patches do.
 * @param {Float32Array} weights  of the patches, row by row
 * @param {{down: number, across: number}} patches @param {number} size @param {boolean} smooth */
export function veilOf(weights, {down, across}, size, smooth) {
  const most = weights.reduce((so, weight) => Math.max(so, weight), 0);
  const veil = new Uint8ClampedArray(size * size);
  if (most === 0) return veil.fill(255);
  const [columns, rows] = [stepsOf(across, size, smooth), stepsOf(down, size, smooth)];
  for (let y = 0; y < size; y++) {
    const [top, bottom, below] = [rows.first[y] * across, rows.second[y] * across, rows.part[y]];
    for (let x = 0; x < size; x++) {
      const [left, right, beside] = [columns.first[x], columns.second[x], columns.part[x]];
      const above = weights[top + left] * (1 - beside) + weights[top + right] * beside;
      const under = weights[bottom + left] * (1 - beside) + weights[bottom + right] * beside;
      veil[y * size + x] = 255 * (1 - (above * (1 - below) + under * below) / most);
    }
  }
  return veil;
}

/** Between which two patches each dot lies, and how far it is from the first to the second.
 * @param {number} count @param {number} size @param {boolean} smooth */
function stepsOf(count, size, smooth) {
  const [first, second, part] = [new Int32Array(size), new Int32Array(size), new Float32Array(size)];
  for (let at = 0; at < size; at++) {
    const place = ((at + 0.5) * count) / size - (smooth ? 0.5 : 0);
    const low = Math.floor(place);
    first[at] = Math.min(count - 1, Math.max(0, low));
    second[at] = smooth ? Math.min(count - 1, Math.max(0, low + 1)) : first[at];
    const from = place - low;
    part[at] = smooth ? from * from * (3 - 2 * from) : 0;
  }
  return {first, second, part};
}
