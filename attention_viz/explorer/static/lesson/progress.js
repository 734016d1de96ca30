// What a student did in the course. The browser keeps it, without a name; a server only ever sees it in a file that the
// student hands in. A browser that keeps nothing has it as long as the page is open.

/** An exercise: it follows from its lesson, its text and its seed. @typedef {{lesson: string, text: string, seed: number}} Posed */

/** `tries` are the last answers up to the right one; a choice is its place, as "#2".
 * @typedef {Posed & {tries: string[], hints: number, solution: boolean, solved: boolean}} Tried */

/** `id` is random, so that two files of one student are known as one; `student` is 0 without a number.
 * @typedef {{version: 1, id: string, language: string, course: {lessons: string[], student: number},
 *   exercises: Tried[], test: {before: string[], after: string[]}}} Progress */

/** Something that a student did in an exercise. @typedef {Posed & Partial<{answer: string, right: boolean, hints: number,
 *   solution: boolean}>} ProgressNote */

const KEPT_PROGRESS = "attention_viz-progress";
/** The event of the page after each change. */
export const PROGRESS_KEPT = "attention_viz-progress-kept";
const ON_PAGE = Symbol.for(KEPT_PROGRESS);
/** The most of each: bytes of a file, exercises, tries or answers of a list, and letters; the largest seed. */
const MOST_PROGRESS = {bytes: 200_000, exercises: 300, seed: 9999, tries: 20, answer: 200, text: 2000, name: 40};
const pageMemory = /** @type {Record<symbol, string | undefined>} */ (/** @type {unknown} */ (globalThis));

/** @returns {Progress} */
export function newProgress() {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
  const course = {lessons: [], student: 0};
  return {version: 1, id, language: "en", course, exercises: [], test: {before: [], after: []}};
}

/** What the browser has kept, or something new. @returns {Progress} */
export function keptProgress() {
  let text = pageMemory[ON_PAGE];
  try {
    text = localStorage.getItem(KEPT_PROGRESS) ?? text;
  } catch {
    // A browser may keep nothing, and say so.
  }
  return readProgress(text ?? "") ?? newProgress();
}

/** @param {Progress} progress */
export function keepProgress(progress) {
  const text = progressText(progress);
  pageMemory[ON_PAGE] = text;
  try {
    localStorage.setItem(KEPT_PROGRESS, text);
  } catch {
    // Kept by the page, then.
  }
  globalThis.dispatchEvent?.(new Event(PROGRESS_KEPT));
}

/** A file's name: the student's number, and the begin of the id. @param {Progress} progress */
export function progressFileName({id, course: {student}}) {
  return `attention-progress-${student ? `${student}-` : ""}${id.slice(0, 4)}.json`;
}

/** The content of a file: without the oldest exercises if it would be too long. @param {Progress} progress */
export function progressText(progress) {
  const exercises = progress.exercises.slice(-MOST_PROGRESS.exercises);
  for (;;) {
    const text = JSON.stringify({...progress, exercises}, null, 1);
    if (!exercises.length || new TextEncoder().encode(text).length <= MOST_PROGRESS.bytes) return text;
    exercises.shift();
  }
}

/** Add what a student did. Tries after the right answer aren't counted.
 * @param {Progress} progress @param {ProgressNote} note @returns {Progress} */
export function addNote(progress, note) {
  const {lesson, text, seed} = note;
  if (!isPosed(note)) return progress;
  const at = progress.exercises.findIndex((one) => isSame(one, note));
  const before = progress.exercises[at] ?? {lesson, text, seed, tries: [], hints: 0, solution: false, solved: false};
  const answered = note.answer !== undefined && !before.solved;
  const after = {
    ...before,
    tries: answered ? [...before.tries, cutAnswer(note.answer)].slice(-MOST_PROGRESS.tries) : before.tries,
    hints: Math.max(before.hints, note.hints ?? 0),
    solution: before.solution || (!before.solved && note.solution === true),
    solved: before.solved || note.right === true,
  };
  const exercises = at < 0 ? [...progress.exercises, after] : progress.exercises.with(at, after);
  return {...progress, exercises};
}

/** Add an opened file's exercises and tests to those in the browser. It goes on under the file's id, number and course
 * only if it had none of its own: the file may be a friend's.
 * @param {Progress} progress @param {Progress} file @returns {Progress} */
export function joinProgress(progress, file) {
  const exercises = file.exercises.map((one) => {
    const here = progress.exercises.find((other) => isSame(one, other));
    return here && (here.solved || !one.solved) ? here : one;
  });
  const others = progress.exercises.filter((one) => !file.exercises.some((other) => isSame(one, other)));
  const test = {...progress.test};
  for (const part of /** @type {const} */ (["before", "after"])) if (!test[part].length) test[part] = file.test[part];
  const isOwn = [progress.exercises, progress.test.before, progress.test.after].some((one) => one.length);
  return {...(isOwn ? progress : file), exercises: [...exercises, ...others], test};
}

/** The lessons whose exercise a record calls solved. @param {Progress} progress */
export function solvedLessons({exercises}) {
  return [...new Set(exercises.filter((one) => one.solved).map((one) => one.lesson))];
}

/** Read a record; null if it is none. What isn't as it should be is left out. @param {string} text @returns {Progress | null} */
export function readProgress(text) {
  const found = readJson(text);
  if (found?.version !== 1 || !/^[0-9a-f]{16}$/.test(found.id)) return null;
  const {id, language, course, exercises, test} = found;
  const read = Array.isArray(exercises) ? exercises.filter(isPosed).map(readTried) : [];
  return {
    version: 1,
    id,
    language: /^[a-z]{2}$/.test(language) ? language : "en",
    course: {
      lessons: readTexts(course?.lessons, MOST_PROGRESS.name, MOST_PROGRESS.exercises),
      student: readCount(course?.student, 99),
    },
    exercises: read.slice(-MOST_PROGRESS.exercises),
    test: {before: readTexts(test?.before), after: readTexts(test?.after)},
  };
}

/** Read a file: a record, or the list of lessons that an older version wrote; null for anything else. @param {string} text */
export function readProgressFile(text) {
  const progress = readProgress(text);
  if (progress) return {progress, done: solvedLessons(progress)};
  const done = readJson(text)?.done;
  return Array.isArray(done)
    ? {progress: null, done: readTexts(done, MOST_PROGRESS.name, MOST_PROGRESS.exercises)}
    : null;
}

/** @param {string} text @returns {any} */
function readJson(text) {
  if (text.length > MOST_PROGRESS.bytes) return null;
  try {
    const found = JSON.parse(text);
    return found instanceof Object ? found : null;
  } catch {
    return null;
  }
}

/** @param {any} one @returns {Tried} */
function readTried({lesson, text, seed, tries, hints, solution, solved}) {
  const read = {tries: readTexts(tries), hints: readCount(hints, MOST_PROGRESS.tries)};
  return {lesson, text, seed, ...read, solution: solution === true, solved: solved === true};
}

/** @param {any} one @returns {one is Posed} */
function isPosed(one) {
  const {lesson, text, seed} = one ?? {};
  const named = typeof lesson === "string" && lesson.length <= MOST_PROGRESS.name;
  const seeded = Number.isInteger(seed) && seed >= 0 && seed <= MOST_PROGRESS.seed;
  return named && seeded && typeof text === "string" && text.length <= MOST_PROGRESS.text;
}

/** @param {Posed} one @param {Posed} other */
function isSame(one, other) {
  return one.lesson === other.lesson && one.text === other.text && one.seed === other.seed;
}

/** @param {unknown} list @param {number} [letters] @param {number} [most] @returns {string[]} */
function readTexts(list, letters = MOST_PROGRESS.answer, most = MOST_PROGRESS.tries) {
  const found = Array.isArray(list) ? list.filter((one) => typeof one === "string") : [];
  return found.slice(-most).map((one) => one.slice(0, letters));
}

/** @param {unknown} number @param {number} most */
function readCount(number, most) {
  return Number.isInteger(number) ? Math.min(most, Math.max(0, Number(number))) : 0;
}

/** @param {string | undefined} answer */
function cutAnswer(answer = "") {
  return answer.slice(0, MOST_PROGRESS.answer);
}
