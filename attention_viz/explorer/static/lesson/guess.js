// A guess of shares, which always make 1.

const EACH = 100;
// What the option that is pressed is given; the others share the rest.
const MOST = 0.6;

/** The shares that a guess in the address stands for: percents, or the place of the one option.
 * @param {string} text @param {number} count @param {boolean} shares */
export function readShares(text, count, shares) {
  const numbers = text.split(".").map(Number);
  return shares ? numbers.map((one) => one / EACH) : Array.from({length: count}, (_, at) => Number(at === numbers[0]));
}

/** Nothing guessed yet: as much for each. @param {number} count */
export function evenShares(count) {
  return Array.from({length: count}, () => 1 / count);
}

/** One share is set, and the others keep their proportions in what is left.
 * @param {readonly number[]} shares @param {number} at @param {number} share */
export function giveShare(shares, at, share) {
  const given = shares.length === 1 ? 1 : Math.min(1, Math.max(0, share));
  const rest = 1 - (shares[at] ?? 0);
  const others = shares.length - 1;
  return shares.map((one, place) => {
    if (place === at) return given;
    return rest > 1e-6 ? (one * (1 - given)) / rest : (1 - given) / others;
  });
}

/** The option that is thought to take most takes it, the others as much as each other.
 * @param {number} count @param {number} at */
export function nameMost(count, at) {
  return giveShare(evenShares(count), at, Math.max(MOST, 1 / count));
}

/** Whole percents that make 100: what rounding down leaves goes to those that lost most by it.
 * @param {readonly number[]} shares */
export function toPercents(shares) {
  const exact = shares.map((share) => share * EACH);
  const found = exact.map(Math.floor);
  const left = EACH - found.reduce((sum, one) => sum + one, 0);
  const lost = exact.map((one, at) => ({at, by: one - Math.floor(one)})).sort((a, b) => b.by - a.by || a.at - b.at);
  for (const {at} of lost.slice(0, left)) found[at] = (found[at] ?? 0) + 1;
  return found;
}
