// The course's data: scripts beside the page, since a page that is opened from a disk may not read other files.

import {loadScript} from "../hosts/scripts.js";

/** @import {AnswerKey} from "../lesson/answers.js"
 * @import {KeepingWords} from "../lesson/keeping.js"
 * @import {Question} from "../lesson/predict.js"
 * @import {Quiz} from "../lesson/quiz.js"
 * @import {ProseNode} from "./prose.js" */

/** A question as it is asked, or answered.
 * @typedef {{heading: string, source: string, premise: string, drawn: boolean, text: string, data: Question}} Asked */
/** A figure of Plotly's by theme, its alternative text, and the option of each place that can be pressed.
 * @typedef {{light: Sheet, dark: Sheet, alt: string, spots: string[]}} CourseFigure */
/** @typedef {{data: object[], layout: Record<string, unknown>}} Sheet */
/** An option and its label. @typedef {[value: string, label: string]} Choice */

/** A lesson in one setting: all that a reader sees of it once the answer is there.
 * @typedef {{answer: Asked, pressed: string[], pressesWord: boolean, choice: string, options: Choice[],
 *   words: Choice[], asking: string, says: string, figure: CourseFigure | null, drawn: boolean, text: ProseNode[]}} LessonState */

/** @typedef {{title: string, rows: string[], columns: string[], cells: string[][]}} GivenNumbers */
/** @typedef {{seed: number, question: string, tables: GivenNumbers[], hints: string[], solution: string, working: string,
 *   answer: AnswerKey}} CourseExercise */

/** A lesson of one text. `missing` says why there is none, `noExercise` why it has no exercise.
 * @typedef {{missing?: string, question: Asked & {how: string},
 *   control: {label: string, ordered: boolean, words: boolean}, pressesWords: boolean, image: string, sound: string,
 *   shows: string, madeFrom: string, states: Record<string, LessonState>, exercises: CourseExercise[],
 *   noExercise: string}} LessonData */

/** @typedef {{name: string, title: string, minutes: number, idea: string, exercise: string, ownText: boolean, files: string[]}} ListedLesson */
/** `words` are the page's own, by name.
 * @typedef {{language: string, texts: string[], lessons: ListedLesson[], tests: Quiz[], terms: [string, string][],
 *   words: Record<string, string>, keeping: KeepingWords}} CourseIndex */

/** @type {Map<string, {resolve: (data: any) => void, data: Promise<any>}>} */
const awaited = new Map();

/** Wait for what a script hands over. @param {string} name */
function awaitData(name) {
  let found = awaited.get(name);
  if (!found) {
    /** @type {(data: any) => void} */
    let resolve = () => {};
    const data = new Promise((done) => (resolve = done));
    found = {resolve, data};
    awaited.set(name, found);
  }
  return found;
}

/** Let the scripts hand over their data. */
export function receiveData() {
  Reflect.set(globalThis, "attentionCourse", (/** @type {string} */ name, /** @type {Packed} */ data) =>
    awaitData(name).resolve(unpack(data)),
  );
}

/** @returns {Promise<CourseIndex>} */
export function courseIndex() {
  return loadData("index.js");
}

/** @param {string} file @returns {Promise<LessonData>} */
export function lessonData(file) {
  return loadData(file);
}

/** Load a script's data, once. @param {string} file */
function loadData(file) {
  if (awaited.has(file)) return awaitData(file).data;
  const {data} = awaitData(file);
  const loaded = loadScript(file).catch((error) => {
    awaited.delete(file);
    throw error;
  });
  return Promise.race([data, loaded.then(() => data)]);
}

/** {"$": 3} stands for the fourth of the parts that are written once.
 * @typedef {{shared: any[], value: any}} Packed */

/** @param {Packed} packed */
export function unpack({shared, value}) {
  /** @type {any[]} */
  const ready = [];
  /** @param {any} part @returns {any} */
  const fill = (part) => {
    if (Array.isArray(part)) return part.map(fill);
    if (part === null || typeof part !== "object") return part;
    if ("$" in part) return partAt(part["$"]);
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, fill(inner)]));
  };
  const partAt = (/** @type {number} */ at) => (ready[at] ??= fill(shared[at]));
  return fill(value);
}
