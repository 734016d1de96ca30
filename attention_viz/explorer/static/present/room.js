// How large everything is in a room: a stage of 1920 × 1080 units, scaled; nothing is written smaller than 30 of them.

// A unit is at least two thirds of a pixel, so that 30 are 20 pixels; a smaller room has fewer units instead.
const [WIDTH, HEIGHT, LEAST_SCALE] = [1920, 1080, 2 / 3];
// Narrower than this, words stand below each other.
export const NARROW = 1000;
export const SMALLEST = 30;

/** The stage in a room of so many pixels. @param {number} width @param {number} height */
export function stageOf(width, height) {
  const scale = Math.max(LEAST_SCALE, Math.min(width / WIDTH, height / HEIGHT));
  return {scale, width: width / scale, height: height / scale};
}

/** Where words of these widths stand on a line: the left edge of each, with a sign in place of those left out.
 * @param {number[]} widths
 * @param {number[]} cuts  the places before which words are left out
 * @param {number} room */
export function onLine(widths, cuts, room) {
  const [gap, sign] = [16, 40];
  const count = widths.length;
  const taken = widths.reduce((sum, width) => sum + width, 0) + cuts.length * sign;
  const free = (room - taken) / Math.max(1, count - 1 + cuts.length);
  const space = Math.min(Math.max(gap, free), 64);
  const total = taken + space * Math.max(0, count - 1 + cuts.length);
  let x = Math.max(0, (room - total) / 2);
  /** @type {number[]} */
  const signs = [];
  const lefts = widths.map((width, place) => {
    if (cuts.includes(place)) {
      signs.push(x + sign / 2);
      x += sign + space;
    }
    const left = x;
    x += width + space;
    return left;
  });
  if (cuts.includes(count)) signs.push(x + sign / 2);
  return {lefts, signs, total};
}
