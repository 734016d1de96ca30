import assert from "node:assert/strict";
import test from "node:test";

import notedComponent from "../../../attention_viz/explorer/static/lesson/noted.js";
import {
  addNote,
  joinProgress,
  keepProgress,
  keptProgress,
  newProgress,
  progressFileName,
  progressText,
  readProgress,
  readProgressFile,
} from "../../../attention_viz/explorer/static/lesson/progress.js";

/** @import {ProgressNote} from "../../../attention_viz/explorer/static/lesson/progress.js" */

const scores = {lesson: "scores", text: "The cat sat", seed: 700};
/** @param {Partial<ProgressNote>[]} notes */
const after = (...notes) => notes.reduce((one, note) => addNote(one, {...scores, ...note}), newProgress());
const only = (/** @type {ReturnType<typeof newProgress>} */ {exercises: [one]}) => one ?? assert.fail("no exercise");

test("an exercise has its tries up to the right one, the hints and whether the solution was seen before", () => {
  const progress = after(
    {answer: "3", right: false},
    {hints: 2},
    {hints: 1},
    {answer: "3.5", right: true},
    {answer: "4"},
    {solution: true},
  );
  assert.deepEqual(progress.exercises, [{...scores, tries: ["3", "3.5"], hints: 2, solution: false, solved: true}]);
  assert.ok(only(after({solution: true}, {answer: "3.5", right: true})).solution);
  assert.equal(addNote(progress, {...scores, seed: 701, answer: "1"}).exercises.length, 2);
});

test("the last twenty tries are kept, each cut, so that the right one is always among them", () => {
  const wrong = Array.from({length: 30}, (_, at) => ({answer: `${at}${"x".repeat(300)}`}));
  const {tries} = only(after(...wrong, {answer: "3.5", right: true}));
  assert.equal(tries.length, 20);
  assert.equal(tries.at(-1), "3.5");
  assert.equal(tries[0]?.length, 200);
});

test("a file is never larger than a teacher's page opens, and loses its oldest exercises first", () => {
  let progress = newProgress();
  for (let seed = 0; seed < 300; seed++)
    for (let at = 0; at < 5; at++) progress = addNote(progress, {...scores, seed, answer: "字".repeat(200)});
  const text = progressText(progress);
  assert.ok(new TextEncoder().encode(text).length <= 200_000);
  const read = readProgress(text);
  assert.equal(read?.exercises.at(-1)?.seed, 299);
  assert.ok((read?.exercises[0]?.seed ?? 0) > 0);
});

test("a record is read as it was written, and anything else is left out or refused", () => {
  const progress = after({answer: "3.5", right: true});
  assert.deepEqual(readProgress(progressText(progress)), progress);
  for (const text of ["", "1", "null", "[]", "{}", '{"version":2}', '{"version":1,"id":"<b>"}', "[".repeat(300_000)])
    assert.equal(readProgress(text), null);
  const hostile = {
    ...progress,
    language: "<b>",
    course: {lessons: [1, "why"], student: 1e9},
    exercises: [null, {lesson: 3}, {...scores, seed: -1}, {...scores, tries: [{}, "1"], hints: "9", solved: "yes"}],
    test: {before: "no", after: [2, "b"]},
  };
  const read = readProgress(JSON.stringify(hostile)) ?? assert.fail("refused");
  assert.equal(read.language, "en");
  assert.deepEqual(read.course, {lessons: ["why"], student: 99});
  assert.deepEqual(read.exercises, [{...scores, tries: ["1"], hints: 0, solution: false, solved: false}]);
  assert.deepEqual(read.test, {before: [], after: ["b"]});
});

test("an older version's file has a list of lessons only", () => {
  assert.deepEqual(readProgressFile('{"done": ["why", 3, "scores"]}'), {progress: null, done: ["why", "scores"]});
  assert.deepEqual(readProgressFile(progressText(after({answer: "3.5", right: true})))?.done, ["scores"]);
  assert.equal(readProgressFile('{"lessons": []}'), null);
});

test("an opened file joins what the browser has, and neither loses a solved exercise", () => {
  const home = after({answer: "1"}, {answer: "3.5", right: true});
  const school = addNote(after({answer: "2"}), {...scores, seed: 701, answer: "5"});
  const joined = joinProgress(home, school);
  assert.equal(joined.id, home.id);
  assert.deepEqual(joined.exercises, [only(home), ...school.exercises.slice(1)]);
  assert.deepEqual(joinProgress(school, home).exercises, [only(home), ...school.exercises.slice(1)]);
});

test("a friend's file changes neither one's own id, number and course nor one's own test", () => {
  const course = {lessons: ["scores"], student: 7};
  const before = {before: ["#1"], after: []};
  const own = {...after({answer: "1"}), course, test: before};
  const theirs = {before: ["#2"], after: ["#3"]};
  const friend = {...after({answer: "3.5", right: true}), course: {lessons: [], student: 8}, test: theirs};
  const joined = joinProgress(own, friend);
  assert.deepEqual([joined.id, joined.course, joined.test], [own.id, course, {before: ["#1"], after: ["#3"]}]);
  assert.deepEqual(joinProgress({...newProgress(), course}, friend), friend);
  assert.equal(joinProgress({...newProgress(), test: before}, friend).id === friend.id, false);
});

test("a seed that no exercise has is neither kept nor read", () => {
  const progress = after({answer: "1"}, {seed: 9999, answer: "1"}, {seed: 10_000, answer: "1"});
  assert.deepEqual(
    progress.exercises.map((one) => one.seed),
    [700, 9999],
  );
  const more = {...progress, exercises: [...progress.exercises, {...only(progress), seed: 10_000}]};
  assert.deepEqual(readProgress(JSON.stringify(more)), progress);
});

test("a browser that keeps nothing has the record as long as the page is open", () => {
  const progress = after({answer: "3.5", right: true});
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    get() {
      throw new Error("denied");
    },
  });
  keepProgress(progress);
  assert.deepEqual(keptProgress(), progress);
  const kept = new Map();
  const storage = {getItem: (/** @type {string} */ name) => kept.get(name) ?? null, setItem: kept.set.bind(kept)};
  Object.defineProperty(globalThis, "localStorage", {configurable: true, value: storage});
  keepProgress(newProgress());
  assert.equal(kept.size, 1);
  assert.deepEqual(keptProgress().exercises, []);
  assert.notEqual(keptProgress().id, progress.id);
});

test("a page that is drawn again notes nothing twice, and another visit begins anew", () => {
  keepProgress(newProgress());
  const course = {lessons: ["scores"], student: 7};
  const first = {number: 1, ...scores, answer: "1", right: false};
  const second = {number: 2, ...scores, answer: "3.5", right: true};
  /** @param {string} visit @param {...object} notes */
  const draw = (visit, ...notes) => notedComponent({data: /** @type {any} */ ({visit, notes, language: "de", course})});
  draw("a");
  draw("a", first);
  draw("a", first);
  draw("a", first, second);
  assert.deepEqual(only(keptProgress()).tries, ["1", "3.5"]);
  draw("b", {...first, seed: 701});
  const {exercises, language, course: kept, id} = keptProgress();
  assert.deepEqual([exercises.length, language, kept], [2, "de", course]);
  assert.equal(progressFileName(keptProgress()), `attention-progress-7-${id.slice(0, 4)}.json`);
  assert.match(progressFileName(newProgress()), /^attention-progress-[0-9a-f]{4}\.json$/);
});
