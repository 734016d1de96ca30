// The test of learning: its questions, and after the course what was right, with the reasons. Answers go to the record.

import {element} from "../parts/element.js";
import {keepProgress, keptProgress} from "./progress.js";

/** `right` and `reason` come with the test after the course only.
 * @typedef {{question: string, options: string[], lesson: string, right?: number, reason?: string}} QuizQuestion */

/** @typedef {{part: "before" | "after", heading: string, questions: QuizQuestion[],
 *   words: Record<string, string>}} Quiz */

// The answer "I don't know"; any other is an option's place.
const UNKNOWN_ANSWER = "?";

/** Show the test, or its result if it was taken.
 * @param {HTMLElement} root @param {Quiz} quiz
 * @param {{addressOf: (lesson: string) => string, open: (lesson: string) => unknown}} ways  to a lesson */
export function showQuiz(root, quiz, ways) {
  const taken = keptProgress().test[quiz.part];
  const heading = element("h1", {tabindex: -1}, quiz.heading);
  const body =
    taken.length === quiz.questions.length
      ? resultOf(quiz, taken, ways)
      : formOf(quiz, () => {
          showQuiz(root, quiz, ways);
          root.querySelector("h1")?.focus();
        });
  root.replaceChildren(heading, ...body);
}

/** @param {Quiz} quiz @param {() => unknown} finished */
function formOf({part, questions, words}, finished) {
  const note = element("p", {role: "status", class: "av-quiz-note"});
  const form = element("form", {class: "av-quiz"}, ...questions.map((one, at) => questionOf(one, at, words)));
  form.append(note, element("button", {class: "av-show"}, words["finish"]));
  form.onsubmit = (event) => {
    event.preventDefault();
    const answers = questions.map((_, at) => {
      const chosen = form.querySelector(`[name="quiz-${at}"]:checked`);
      return chosen instanceof HTMLInputElement ? chosen.value : "";
    });
    const missing = answers.filter((answer) => !answer).length;
    if (missing) {
      note.textContent = (words["left"] ?? "").replace("{count}", String(missing));
      const first = form.querySelector(`[name="quiz-${answers.indexOf("")}"]`);
      if (first instanceof HTMLElement) first.focus();
      return;
    }
    const progress = keptProgress();
    keepProgress({...progress, test: {...progress.test, [part]: answers}});
    finished();
  };
  return [element("p", {}, words["why"]), form];
}

/** @param {QuizQuestion} one @param {number} at @param {Quiz["words"]} words */
function questionOf({question, options}, at, words) {
  const choices = [...options.map((option, place) => [`#${place}`, option]), [UNKNOWN_ANSWER, words["unknown"] ?? ""]];
  return element(
    "fieldset",
    {},
    element("legend", {}, `${at + 1}. ${question}`),
    ...choices.map(([value, text]) =>
      element("label", {}, element("input", {type: "radio", name: `quiz-${at}`, value}), ` ${text}`),
    ),
  );
}

/** @param {Quiz} quiz @param {string[]} taken
 * @param {{addressOf: (lesson: string) => string, open: (lesson: string) => unknown}} ways */
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

/** @param {QuizQuestion} one @param {string} answer @param {Quiz["words"]} words
 * @param {{addressOf: (lesson: string) => string, open: (lesson: string) => unknown}} ways */
function reasonOf({question, options, right = -1, reason, lesson}, answer, words, {addressOf, open}) {
  const fine = answer === `#${right}`;
  const given = options[Number(answer.slice(1))] ?? words["unknown"] ?? "";
  const verdict = fine ? words["right"] : (words["wrong"] ?? "").replace("{answer}", given);
  const link = element("a", {href: addressOf(lesson)}, words["see"]);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    open(lesson);
  });
  return element(
    "li",
    {"data-right": String(fine)},
    element("strong", {}, question),
    element(
      "p",
      {},
      `${verdict} `,
      fine ? "" : element("b", {}, options[right] ?? ""),
      ` ${reason ?? ""} `,
      fine ? "" : link,
    ),
  );
}
