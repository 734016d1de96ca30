// Which of several equal words is meant. Python's `analysis/words.py` counts them in the same way, in any case.

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
const ENDINGS = ["th", "st", "nd", "rd"];

/** A number from 1 as it counts: "second", "11th", "52nd". @param {number} number */
export function ordinal(number) {
  const teen = [11, 12, 13].includes(number % 100);
  return ORDINALS[number - 1] ?? `${number}${(teen ? "" : ENDINGS[number % 10]) || "th"}`;
}

/** Which of the equal words stands at a place, as "the second "; empty where there is one only.
 * @param {string[]} words @param {number} place */
export function whichOf(words, place) {
  const wanted = words[place].toLowerCase();
  const same = words.flatMap((word, at) => (word.toLowerCase() === wanted ? [at] : []));
  return same.length > 1 ? `the ${ordinal(same.indexOf(place) + 1)} ` : "";
}
