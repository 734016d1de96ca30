// A lesson's exercise: its numbers, an answer that is checked in the browser, hints, and the solution after a try.

import {element} from "../parts/element.js";
import {checkCells, checkNumber, checkOption} from "../lesson/answers.js";

/** @import {CellPlace, Verdict} from "../lesson/answers.js"
 * @import {ProgressNote} from "../lesson/progress.js"
 * @import {CourseExercise, GivenNumbers} from "./data.js" */

/** What the reader typed or chose, as it is kept, and how it is checked; null for nothing.
 * @typedef {() => {answer: string, verdict: Verdict} | null} Reading */
/** @typedef {Record<string, string>} PageWords */

/** @param {CourseExercise} exercise @param {PageWords} words
 * @param {(note: Partial<ProgressNote>) => void} note @param {() => void} another */
export function makeExercise(exercise, words, note, another) {
  const [field, read] = makeField(exercise, words);
  const verdict = element("div", {class: "course-verdict", tabindex: -1});
  const form = element("form", {class: "course-answer"}, field);
  form.append(element("button", {class: "course-main"}, words["check"]));
  const solution = element("button", {type: "button", disabled: true}, words["solution"]);
  form.onsubmit = (event) => {
    event.preventDefault();
    const given = read();
    solution.disabled = false;
    if (given) note({answer: given.answer, right: given.verdict.right});
    showVerdict(verdict, given?.verdict ?? null, words);
  };
  solution.onclick = () => {
    note({solution: true});
    showLines(verdict, "course-solution", [
      [fillWord(words["solutionIs"], "answer", exercise.solution), exercise.working],
    ]);
  };
  const more = element("div", {class: "course-more"}, makeHints(exercise, words, verdict, solution, note), solution);
  more.append(element("button", {type: "button", onclick: another}, words["another"]));
  const tables = element("div", {class: "course-tables"}, ...exercise.tables.map(makeTable));
  return [element("p", {}, exercise.question), tables, form, more, verdict];
}

/** @param {CourseExercise} exercise @param {PageWords} words @param {HTMLElement} verdict
 * @param {HTMLButtonElement} solution @param {(note: Partial<ProgressNote>) => void} note */
function makeHints({hints}, words, verdict, solution, note) {
  let shown = 0;
  const name = () =>
    shown < hints.length
      ? fillWord(fillWord(words["hint"], "number", shown + 1), "count", hints.length)
      : words["noHints"];
  const button = element("button", {type: "button", disabled: !hints.length}, name());
  button.onclick = () => {
    shown++;
    note({hints: shown});
    const lines = hints.slice(0, shown).map((hint, at) => [fillWord(words["hintName"], "number", at + 1), hint]);
    showLines(verdict, "course-hints", lines);
    solution.disabled &&= shown < hints.length;
    button.disabled = shown === hints.length;
    button.textContent = name() ?? "";
  };
  return button;
}

/** A sentence of the page's with a value in its {name}. @param {string | undefined} sentence @param {string} name
 * @param {string | number} value */
export function fillWord(sentence, name, value) {
  return (sentence ?? "").replace(`{${name}}`, () => String(value));
}

/** Lines that each begin bold, in their own part of the feedback, which is brought into sight and read out.
 * @param {HTMLElement} verdict @param {string} part @param {string[][]} lines */
function showLines(verdict, part, lines) {
  let place = verdict.querySelector(`.${part}`);
  if (!place) verdict.append((place = element("div", {class: part})));
  place.replaceChildren(...lines.map(([bold, rest]) => element("p", {}, element("strong", {}, bold), ` ${rest}`)));
  bringIntoSight(verdict);
}

/** @param {HTMLElement} verdict @param {Verdict | null} found @param {PageWords} words */
function showVerdict(verdict, found, words) {
  verdict.querySelector(".course-reply")?.remove();
  const kind = found?.right ? "right" : found?.understood ? "wrong" : "unread";
  const bold = kind === "unread" ? "" : words[kind];
  const said = found ? found.words : words["nothing"];
  verdict.prepend(
    element("p", {class: "course-reply", "data-kind": kind}, bold && element("strong", {}, bold), ` ${said}`),
  );
  bringIntoSight(verdict);
}

/** @param {HTMLElement} verdict */
function bringIntoSight(verdict) {
  verdict.focus({preventScroll: true});
  verdict.scrollIntoView({block: "nearest"});
}

/** @param {CourseExercise} exercise @param {PageWords} words @returns {[HTMLElement, Reading]} */
function makeField({answer}, words) {
  if (answer.kind === "options") {
    const group = element("fieldset", {class: "course-options"}, element("legend", {}, words["yourAnswer"]));
    group.append(
      ...answer.options.map((option, at) =>
        element("label", {}, element("input", {type: "radio", name: "answer", value: at}), ` ${option}`),
      ),
    );
    return [
      group,
      () => {
        const chosen = /** @type {HTMLInputElement | null} */ (group.querySelector(":checked"));
        return chosen && {answer: `#${chosen.value}`, verdict: checkOption(answer, Number(chosen.value))};
      },
    ];
  }
  if (answer.kind === "cells") return makeMask(answer, words);
  const attributes = {
    type: "text",
    "aria-label": words["yourAnswer"],
    placeholder: words["number"],
    autocomplete: "off",
  };
  const input = element("input", {...attributes, maxlength: 200, spellcheck: false});
  return [input, () => (input.value.trim() ? {answer: input.value, verdict: checkNumber(answer, input.value)} : null)];
}

/** A matrix of cells to mark. @param {import("../lesson/answers.js").CellKey} answer @param {PageWords} words
 * @returns {[HTMLElement, Reading]} */
function makeMask(answer, words) {
  const begin = new Set(answer.start.map(String));
  const head = element("tr", {}, element("td"), ...answer.columns.map((name) => element("th", {scope: "col"}, name)));
  const rows = answer.rows.map((name, row) => {
    const cells = answer.columns.map((column, at) => {
      const told = `${name} → ${column}`;
      const pressed = begin.has(`${row},${at}`);
      const cell = element("button", {
        type: "button",
        "aria-pressed": String(pressed),
        "aria-label": told,
        title: told,
      });
      cell.dataset["cell"] = `${row},${at}`;
      cell.onclick = () => cell.setAttribute("aria-pressed", String(cell.getAttribute("aria-pressed") !== "true"));
      return element("td", {}, cell);
    });
    return element("tr", {}, element("th", {scope: "row"}, name), ...cells);
  });
  const table = element("table", {class: "course-mask", "aria-label": words["yourAnswer"]}, head, ...rows);
  /** @type {Reading} */
  const read = () => {
    const marked = /** @type {NodeListOf<HTMLElement>} */ (table.querySelectorAll('[aria-pressed="true"]'));
    const cells = Array.from(marked, (one) => /** @type {CellPlace} */ (one.dataset["cell"]?.split(",").map(Number)));
    return {answer: cells.map((cell) => cell.join(">")).join(","), verdict: checkCells(answer, cells)};
  };
  return [element("div", {class: "course-scroll"}, table), read];
}

/** @param {GivenNumbers} given */
function makeTable({title, rows, columns, cells}) {
  const head = element("tr", {}, element("td"), ...columns.map((name) => element("th", {scope: "col"}, name)));
  const body = rows.map((name, row) =>
    element(
      "tr",
      {},
      element("th", {scope: "row"}, name),
      ...(cells[row] ?? []).map((text) => element("td", {}, text)),
    ),
  );
  const table = element("table", {}, element("caption", {}, title), head, ...body);
  return element("div", {class: "course-scroll", tabindex: 0, role: "group", "aria-label": title}, table);
}
