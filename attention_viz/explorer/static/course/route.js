// Where the reader is, as the address has it behind "#": the lesson, the text and what was chosen, so that a link leads there.

/** `test` is one before or after the lessons, or ""; `text` counts from 0; `guess` is a guess as the prediction writes it, "shown" for none, or "" before the answer.
 * @typedef {{test: string, lesson: string, text: number, choice: string, word: string, guess: string, seed: number}} Route */

/** @param {string} hash @param {{lessons: readonly {name: string}[], texts: readonly unknown[],
 *   tests: readonly {part: string}[]}} course @returns {Route} */
export function readRoute(hash, {lessons, texts, tests}) {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const lesson = lessons.find(({name}) => name === found.get("lesson")) ?? lessons[0];
  const text = readWhole(found.get("text"), 1);
  return {
    test: tests.find(({part}) => part === found.get("test"))?.part ?? "",
    lesson: lesson?.name ?? "",
    text: text >= 1 && text <= texts.length ? text - 1 : 0,
    choice: found.get("choice") ?? "",
    word: found.get("word") ?? "",
    guess: found.get("guess") ?? "",
    seed: readWhole(found.get("seed"), 0),
  };
}

/** @param {string | null} text @param {number} usual */
function readWhole(text, usual) {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : usual;
}

/** @param {Route} route */
export function writeRoute({test, lesson, text, choice, word, guess, seed}) {
  const found = new URLSearchParams(test ? {test} : {lesson});
  if (text) found.set("text", String(text + 1));
  for (const [name, value] of Object.entries({choice, word, guess})) if (value) found.set(name, value);
  if (seed) found.set("seed", String(seed));
  return `#${found}`;
}

/** The seed of a recorded exercise: the one that is asked for, or else it counts through them, and begins again after the last.
 * @param {readonly {seed: number}[]} exercises @param {number} seed */
export function recordedSeed(exercises, seed) {
  const found = exercises.find((one) => one.seed === seed) ?? exercises[seed % exercises.length];
  return found ? found.seed : seed;
}

/** Another lesson, from its beginning. @param {Route} route @param {Partial<Route>} [changes] @returns {Route} */
export function beginAt(route, changes = {}) {
  return {...route, test: "", choice: "", word: "", guess: "", ...changes};
}

/** The state that a route names; if there is none with both settings, one with the setting that was made last.
 * @template T @param {Record<string, T>} states @param {Route} route @param {"choice" | "word"} last */
export function stateAt(states, {choice, word}, last = "word") {
  const one = last === "word" ? `|${word}` : `${choice}|`;
  return states[`${choice}|${word}`] ?? states[one] ?? states["|"];
}
