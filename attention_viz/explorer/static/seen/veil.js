// How much light lies on each dot of a picture: all where the most weight is, none where there is none.

/** How bright a photo is where there is no weight; `views/figures/seen.py` has the same. */
export const DARK = 0.28;

/** The light of each dot from 0 to 1, `high` rows of `wide`: by patch, or going over from the middle of one patch to that
 * of the next, which shows no more than the patches do.
 * @param {Float32Array} weights  of the patches, row by row
 * @param {{down: number, across: number}} patches @param {{wide: number, high: number, smooth: boolean}} size */
export function lightOf(weights, {down, across}, {wide, high, smooth}) {
  const most = weights.reduce((so, weight) => Math.max(so, weight), 0);
  const light = new Float32Array(wide * high);
  if (most === 0) return light;
  const [columns, rows] = [stepsOf(across, wide, smooth), stepsOf(down, high, smooth)];
  for (let y = 0; y < high; y++) {
    const [top, bottom, below] = [rows.first[y] * across, rows.second[y] * across, rows.part[y]];
    for (let x = 0; x < wide; x++) {
      const [left, right, beside] = [columns.first[x], columns.second[x], columns.part[x]];
      const above = weights[top + left] * (1 - beside) + weights[top + right] * beside;
      const under = weights[bottom + left] * (1 - beside) + weights[bottom + right] * beside;
      light[y * wide + x] = (above * (1 - below) + under * below) / most;
    }
  }
  return light;
}

/** The veil over a picture, 0 to 255: what is left of the light. @param {Float32Array} weights
 * @param {{down: number, across: number}} patches @param {number} size @param {boolean} smooth */
export function veilOf(weights, patches, size, smooth) {
  return Uint8ClampedArray.from(
    lightOf(weights, patches, {wide: size, high: size, smooth}),
    (light) => 255 * (1 - light),
  );
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
