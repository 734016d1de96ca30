// A lesson on the page: what it is about, the question, and once that is answered the figure, the text and the exercise.

import predictComponent from "../lesson/predict.js";
import {element} from "../parts/element.js";
import {makeChoice, setChoice} from "./choices.js";
import {makeExercise} from "./exercise.js";
import {clearFigure, drawFigure} from "./figure.js";
import {beginAt, stateAt} from "./route.js";

/** @import {ProgressNote} from "../lesson/progress.js"
 * @import {Choosing} from "./choices.js"
 * @import {Asked, CourseIndex, LessonData, LessonState, ListedLesson} from "./data.js"
 * @import {Route} from "./route.js" */

/** A lesson that is on the page. `last` is the setting that was made last.
 * @typedef {{index: CourseIndex, listed: ListedLesson, data: LessonData, route: Route, root: HTMLElement,
 *   go: (route: Route) => void, note: (note: ProgressNote) => void, last: "choice" | "word",
 *   parts: Record<string, HTMLElement>, choosers: Map<string, HTMLElement>}} LessonView */

/** The parts of a lesson, in the order in which they are read. */
const PARTS = /** @type {const} */ (["title", "idea", "asked", "bars", "choices", "figure", "text", "predict", "exercise"]);

/** @param {Omit<LessonView, "parts" | "choosers" | "last">} lesson @returns {LessonView} */
export function openLesson(lesson) {
  const parts = Object.fromEntries(PARTS.map((name) => [name, element("div", {class: `course-${name}`})]));
  const bars = element("div", {}, element("div", {class: "av-explorer av-lesson", "data-testid": "prediction"}));
  const {title, idea, asked, choices, figure, text, predict, exercise} = /** @type {any} */ (parts);
  parts["bars"]?.append(bars);
  const picture = element("div", {class: "course-picture"}, parts["bars"], choices, figure, text);
  const steps = element("div", {class: "course-steps"}, predict, exercise);
  lesson.root.replaceChildren(title, idea, asked, element("div", {class: "course-columns"}, picture, steps));
  /** @type {LessonView} */
  const view = {...lesson, parts, choosers: new Map(), last: "word"};
  drawTitle(view);
  drawExercise(view);
  return view;
}

/** Show a lesson as its route has it; says whether the answer has just come. @param {LessonView} view */
export function showLesson(view) {
  const {route, data, parts, index} = view;
  const state = stateAt(data.states, route, view.last);
  const seen = Boolean(route.guess) && state !== undefined;
  const asked = seen ? state.answer : data.question;
  const came = view.root.dataset["seen"] === "false" && seen;
  view.root.dataset["seen"] = String(seen);
  setText(parts["title"]?.querySelector("h1"), asked.heading);
  setText(parts["title"]?.querySelector(".course-source"), `${view.listed.title} · ${seen ? asked.source : minutes(view)}`);
  frame(parts["bars"], asked.drawn, index.words);
  drawBars(view, asked, seen ? state : null);
  drawAsked(view, seen);
  drawPredict(view, state, seen);
  for (const name of ["choices", "figure", "text"]) /** @type {HTMLElement} */ (parts[name]).hidden = !seen;
  if (came) drawExercise(view);
  if (seen) drawAnswer(view, state);
  return came;
}

/** @param {LessonView} view */
function minutes({listed, index}) {
  return (index.words["minutes"] ?? "").replace("{count}", String(listed.minutes));
}

/** @param {LessonView} view */
function drawTitle(view) {
  const {index, listed, route, parts, go} = view;
  const at = index.lessons.indexOf(listed);
  const turn = (/** @type {number} */ by, /** @type {string | undefined} */ words) => {
    const to = index.lessons[at + by];
    const button = element("button", {type: "button", disabled: !to}, words);
    if (to) button.onclick = () => go(beginAt(route, {lesson: to.name}));
    return button;
  };
  const buttons = element("div", {class: "course-turn"}, turn(-1, index.words["back"]), turn(1, index.words["next"]));
  const heading = element("div", {}, element("h1", {tabindex: -1}), element("p", {class: "course-source"}));
  parts["title"]?.replaceChildren(heading, buttons);
  parts["idea"]?.replaceChildren(...(listed.idea ? [element("p", {}, listed.idea)] : []));
}

/** The text, image or sound that the question is about. @param {LessonView} view @param {boolean} seen */
function drawAsked({data, parts, index, listed, route}, seen) {
  const own = data.question.text;
  const text = listed.ownText || own ? own : (index.texts[route.text] ?? "");
  const quoted = text && (index.words["quoted"] ?? "").replace("{text}", () => text);
  const found = [quoted ? element("p", {}, quoted) : null];
  if (data.sound) found.push(element("audio", {controls: true, src: data.sound, "aria-label": data.shows}));
  if (data.image && !seen) found.push(element("img", {src: data.image, alt: data.shows, width: 300}));
  const key = JSON.stringify([quoted, seen && data.image]);
  const place = parts["asked"];
  if (!place || place.dataset["key"] === key) return;
  place.dataset["key"] = key;
  place.replaceChildren(...found.filter((one) => one !== null));
}

/** @param {LessonView} view @param {Asked} asked @param {LessonState | null} state */
function drawBars(view, asked, state) {
  const {parts, route, data} = view;
  const guess = state && isFirst(view, state) && route.guess !== "shown" ? route.guess : null;
  const bars = /** @type {HTMLElement} */ (parts["bars"]?.querySelector(".av-lesson")?.parentElement);
  predictComponent({
    data: {...asked.data, id: `${data.madeFrom} ${asked.data.id}`, guess},
    parentElement: bars,
    setStateValue: () => {},
    setTriggerValue: (name, value) => {
      if (name === "guess") view.go({...view.route, guess: String(value)});
      const pressed = state && name === "press" ? state.pressed[Number(value)] : "";
      if (pressed) pressOption(view, pressed, state?.pressesWord ? "word" : "choice");
    },
  });
}

/** Whether a state is the one that the question was about. @param {LessonView} view @param {LessonState} state */
function isFirst({data}, state) {
  return state === data.states["|"];
}

/** @param {LessonView} view @param {string} option @param {"choice" | "word"} setting */
function pressOption(view, option, setting) {
  view.last = setting;
  const route = {...view.route, [setting]: option};
  // A guess was about another setting.
  view.go({...route, guess: view.route.guess && "shown"});
}

/** @param {LessonView} view @param {LessonState | undefined} state @param {boolean} seen */
function drawPredict(view, state, seen) {
  const {index, data, route, parts} = view;
  const {words} = index;
  const place = /** @type {HTMLElement} */ (parts["predict"]);
  if (!seen || !state) {
    const how = words[data.question.data.picture ? "howPicture" : data.question.data.shares ? "howShares" : "howOne"];
    place.replaceChildren(
      element("p", {}, element("strong", {}, "1"), ` ${words["predict"]}`),
      element("p", {}, how),
      element("p", {class: "course-later"}, element("strong", {}, "2"), ` ${words["answer"]}`),
    );
    return;
  }
  const at = route.guess === "shown" || !isFirst(view, state) ? -1 : guessedOption(route.guess, data);
  const found = data.question.replies[at];
  const reply = found && element("p", {class: "course-reply", "data-kind": found.right ? "right" : "wrong"}, found.words);
  const says = element("p", {}, element("strong", {}, "2"), ` ${state.says}`);
  place.replaceChildren(...(reply ? [reply] : []), says);
}

/** The option that a guess names; of shares, the one with most. @param {string} guess @param {LessonData} data */
function guessedOption(guess, {question}) {
  const numbers = guess.split(".").map(Number);
  return question.data.shares ? numbers.indexOf(Math.max(...numbers)) : (numbers[0] ?? -1);
}

/** @param {LessonView} view @param {LessonState} state */
function drawAnswer(view, state) {
  const {parts, data, index} = view;
  const [figure, text] = [/** @type {HTMLElement} */ (parts["figure"]), /** @type {HTMLElement} */ (parts["text"])];
  drawChoices(view, state);
  frame(figure, state.drawn && state.figure !== null, index.words);
  const sheet = /** @type {HTMLElement} */ (figure.querySelector(".course-sheet") ?? element("div", {class: "course-sheet", role: "img"}));
  figure.append(sheet);
  figure.hidden = state.figure === null;
  if (state.figure) {
    drawFigure(sheet, state.figure, (option) => pressOption(view, option, data.control.words ? "choice" : "word"));
  } else clearFigure(sheet);
  const markup = state.text.join("\n");
  // Our own HTML: every word of a reader's in it was escaped when it was made.
  if (text.dataset["markup"] !== markup) text.innerHTML = markup;
  text.dataset["markup"] = markup;
}

/** @param {LessonView} view @param {LessonState} state */
function drawChoices(view, state) {
  const {data, index, parts, choosers} = view;
  const {label, ordered, words} = data.control;
  /** @type {Record<string, Choosing>} */
  const wanted = {
    choice: {name: "choice", label, options: state.options, value: state.choice, ordered, buttons: words},
    word: {name: "word", label: index.words["queryWord"] ?? "", options: state.words, value: state.asking, buttons: true},
  };
  for (const setting of /** @type {const} */ (["choice", "word"])) {
    const choosing = /** @type {Choosing} */ (wanted[setting]);
    const key = JSON.stringify(choosing.options);
    const before = choosers.get(setting);
    if (before?.dataset["key"] === key) setChoice(before, choosing);
    else {
      before?.remove();
      if (!choosing.options.length) continue;
      const made = makeChoice(choosing, (value) => pressOption(view, value, setting));
      made.dataset["key"] = key;
      choosers.set(setting, made);
      if (setting === "choice") parts["choices"]?.prepend(made);
      else parts["choices"]?.append(made);
    }
  }
}

/** @param {LessonView} view */
function drawExercise(view) {
  const {parts, data, index, listed, route, go} = view;
  const place = /** @type {HTMLElement} */ (parts["exercise"]);
  const heading = element("h2", {}, element("strong", {}, "3"), ` ${index.words["exercise"]}: ${listed.exercise}`);
  const at = Math.max(
    0,
    data.exercises.findIndex(({seed}) => seed === route.seed),
  );
  const exercise = data.exercises[at];
  if (!route.guess || !exercise) {
    place.replaceChildren(heading, ...(data.noExercise ? [element("p", {}, data.noExercise)] : []));
    return;
  }
  const posed = {lesson: listed.name, text: index.texts[route.text] ?? "", seed: exercise.seed};
  const next = data.exercises[(at + 1) % data.exercises.length] ?? exercise;
  const made = makeExercise(
    exercise,
    index.words,
    (note) => view.note({...posed, ...note}),
    () => go({...view.route, seed: next.seed}),
  );
  place.replaceChildren(heading, ...made);
}

/** Numbers that were drawn stand in a frame of dashes, so that nobody takes them for a model's.
 * @param {HTMLElement | undefined} place @param {boolean} drawn @param {Record<string, string>} words */
function frame(place, drawn, words) {
  if (!place) return;
  place.dataset["drawn"] = String(drawn);
  const note = place.querySelector(".course-drawn");
  if (!drawn) note?.remove();
  else if (!note) place.prepend(element("p", {class: "course-drawn"}, words["drawn"]));
}

/** @param {Element | null | undefined} place @param {string} text */
function setText(place, text) {
  if (place && place.textContent !== text) place.textContent = text;
}
