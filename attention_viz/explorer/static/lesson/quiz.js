// The test of learning: its questions, and after the course what was right, with the reasons. Answers go to the record.

import {element} from "../parts/element.js";
import {keepProgress, keptProgress} from "./progress.js";

/** @import {Progress} from "./progress.js" */

/** `right` and `reason` come with the test after the course only.
 * @typedef {{question: string, options: string[], lesson: string, right?: number, reason?: string}} QuizQuestion */

/** @typedef {{part: "before" | "after", heading: string, questions: QuizQuestion[],
 *   words: Record<string, string>}} Quiz */

// The answer "I don't know"; any other is an option's place.
const UNKNOWN_ANSWER = "?";

/** Of a record, what isn't answers. @typedef {Partial<Pick<Progress, "language" | "course">>} Whose */

/** Where links lead, or "" for a lesson that the course lacks; `onFinish` follows the result, which has the heading's place.
 * @typedef {{addressOf: (lesson: string) => string, open: (lesson: string) => unknown, onFinish: () => unknown,
 *   whose: Whose}} QuizWays */

/** Show the test, or its result if it was taken. The page's heading isn't part of it.
 * @param {HTMLElement} root @param {Quiz} quiz @param {QuizWays} ways */
export function showQuiz(root, quiz, ways) {
  const taken = keptProgress().test[quiz.part];
  const chosen = root.dataset["part"] === quiz.part ? chosenIn(root, quiz) : [];
  root.dataset["part"] = quiz.part;
  const finish = (/** @type {string[]} */ answers) => {
    const progress = keptProgress();
    keepProgress({...progress, ...ways.whose, test: {...progress.test, [quiz.part]: answers}});
    showQuiz(root, quiz, ways);
    ways.onFinish();
  };
  const isTaken = taken.length === quiz.questions.length;
  root.replaceChildren(...(isTaken ? resultOf(quiz, taken, ways) : formOf(quiz, chosen, finish)));
}

/** The answers in a form, each "" if there is none. @param {HTMLElement} root @param {Quiz} quiz */
function chosenIn(root, {questions}) {
  return questions.map((_, at) => {
    const input = root.querySelector(`[name="quiz-${at}"]:checked`);
    return input instanceof HTMLInputElement ? input.value : "";
  });
}

/** @param {Quiz} quiz @param {string[]} chosen  before, in another language
 * @param {(answers: string[]) => unknown} finish */
function formOf(quiz, chosen, finish) {
  const {questions, words} = quiz;
  const note = element("p", {role: "status", class: "av-quiz-note"});
  const form = element(
    "form",
    {class: "av-quiz"},
    ...questions.map((one, at) => questionOf(one, at, words, chosen[at])),
  );
  form.append(note, element("button", {class: "av-show"}, words["finish"]));
  form.onchange = () => (note.textContent = "");
  form.onsubmit = (event) => {
    event.preventDefault();
    const answers = chosenIn(form, quiz);
    const missing = answers.filter((answer) => !answer).length;
    if (missing) {
      note.textContent = (words["left"] ?? "").replace("{count}", String(missing));
      const first = form.querySelector(`[name="quiz-${answers.indexOf("")}"]`);
      if (first instanceof HTMLElement) first.focus();
      return;
    }
    finish(answers);
  };
  return [element("p", {}, words["why"]), form];
}

/** @param {QuizQuestion} one @param {number} at @param {Quiz["words"]} words @param {string} [chosen] */
function questionOf({question, options}, at, words, chosen) {
  const choices = [...options.map((option, place) => [`#${place}`, option]), [UNKNOWN_ANSWER, words["unknown"] ?? ""]];
  return element(
    "fieldset",
    {},
    element("legend", {}, `${at + 1}. ${question}`),
    ...choices.map(([value, text]) =>
      element(
        "label",
        {},
        element("input", {type: "radio", name: `quiz-${at}`, value, checked: value === chosen}),
        ` ${text}`,
      ),
    ),
  );
}

/** @param {Quiz} quiz @param {string[]} taken @param {QuizWays} ways */
function resultOf({part, questions, words}, taken, ways) {
  if (part === "before") return [element("p", {}, words["kept"])];
  const count = String(questions.length);
  /** @param {string[]} answers */
  const score = (answers) => String(questions.filter(({right}, at) => answers[at] === `#${right}`).length);
  const {before} = keptProgress().test;
  const earlier = before.length ? ` ${(words["earlier"] ?? "").replace("{right}", score(before))}` : "";
  const said = (words["score"] ?? "").replace("{right}", score(taken)).replace("{count}", count);
  return [
    element("p", {class: "av-quiz-score"}, `${said}${earlier}`),
    element("ol", {class: "av-quiz"}, ...questions.map((one, at) => reasonOf(one, taken[at] ?? "", words, ways))),
  ];
}

/** @param {QuizQuestion} one @param {string} answer @param {Quiz["words"]} words @param {QuizWays} ways */
function reasonOf({question, options, right = -1, reason, lesson}, answer, words, {addressOf, open}) {
  const fine = answer === `#${right}`;
  const given = options.find((_, place) => answer === `#${place}`);
  const wrong = given === undefined ? words["unknown"] : words["wrong"]?.replace("{answer}", given);
  const address = addressOf(lesson);
  const link = address ? element("a", {href: address}, words["see"]) : null;
  link?.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    open(lesson);
  });
  const answered = fine
    ? [element("p", {}, `${words["right"]} ${reason ?? ""}`)]
    : [
        element("p", {}, wrong),
        element("p", {}, element("b", {}, options[right])),
        element("p", {}, `${reason ?? ""} `, link),
      ];
  return element("li", {"data-right": String(fine)}, element("strong", {}, question), ...answered);
}
