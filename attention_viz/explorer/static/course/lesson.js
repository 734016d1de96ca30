// A lesson on the page: what it is about, the question, and once that is answered the figure, the text and the exercise.

import {predictComponent, replyTo} from "../lesson/predict.js";
import {element} from "../parts/element.js";
import {makeChoice, setChoice} from "./choices.js";
import {fillWord, makeExercise} from "./exercise.js";
import {clearFigure, drawFigure} from "./figure.js";
import {isGuess} from "./guesses.js";
import {drawProse} from "./prose.js";
import {stateAt} from "./route.js";
import {turnButtons} from "./turn.js";

/** @import {ProgressNote} from "../lesson/progress.js"
 * @import {Choosing} from "./choices.js"
 * @import {Asked, CourseIndex, LessonData, LessonState, ListedLesson} from "./data.js"
 * @import {Route} from "./route.js" */

/** A lesson that is on the page. `last` is the setting that was made last.
 * @typedef {{index: CourseIndex, listed: ListedLesson, data: LessonData, route: Route, root: HTMLElement,
 *   go: (route: Route) => void, note: (note: ProgressNote) => void, last: "choice" | "word",
 *   parts: Record<string, HTMLElement>, choosers: Map<string, HTMLElement>}} LessonView */

/** The parts of a lesson, in the order in which they are read. */
const PARTS = /** @type {const} */ ([
  "title",
  "idea",
  "asked",
  "bars",
  "choices",
  "figure",
  "text",
  "glossary",
  "predict",
  "exercise",
]);

/** @param {Omit<LessonView, "parts" | "choosers" | "last">} lesson @returns {LessonView} */
export function openLesson(lesson) {
  const parts = Object.fromEntries(PARTS.map((name) => [name, element("div", {class: `course-${name}`})]));
  const bars = element("div", {}, element("div", {class: "av-explorer av-lesson", "data-testid": "prediction"}));
  const {title, idea, asked, choices, figure, text, glossary, predict, exercise} = /** @type {any} */ (parts);
  parts["bars"]?.append(bars);
  const picture = element("div", {class: "course-picture"}, parts["bars"], choices, figure, text, glossary);
  const steps = element("div", {class: "course-steps"}, predict, exercise);
  lesson.root.replaceChildren(idea, title, asked, element("div", {class: "course-columns"}, picture, steps));
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
  const below = (/** @type {string} */ words) => `${view.listed.title} · ${words}`;
  setText(parts["title"]?.querySelector("h1"), asked.heading);
  setText(parts["title"]?.querySelector(".course-source"), below(seen ? asked.source : minutes(view)));
  const answer = (state ?? data.states["|"])?.answer ?? asked;
  keepRoom(parts["title"]?.querySelector(".course-room"), [
    [data.question.heading, below(minutes(view))],
    [answer.heading, below(answer.source)],
  ]);
  setText(parts["idea"]?.querySelector(".course-premise"), asked.premise);
  frame(parts["bars"], asked.drawn, index.words);
  drawQuestion(view, asked, seen ? state : null);
  drawAsked(view, asked, seen);
  drawPredict(view, state, seen);
  for (const name of ["choices", "figure", "text", "glossary"]) /** @type {HTMLElement} */ (parts[name]).hidden = !seen;
  if (came) drawExercise(view);
  if (seen) drawAnswer(view, state);
  return came;
}

/** Keep the room of the largest heading, invisibly and without its words, so that an answer moves nothing.
 * @param {Element | null | undefined} room @param {[heading: string, below: string][]} headings */
function keepRoom(room, headings) {
  const hidden = (/** @type {string} */ text) => text.replace(/[\p{L}\p{N}]/gu, "e");
  room?.replaceChildren(
    ...headings.map(([heading, below]) => element("div", {}, element("strong", {}, hidden(heading)), hidden(below))),
  );
}

/** @param {LessonView} view */
function minutes({listed, index}) {
  return fillWord(index.words["minutes"], "count", listed.minutes);
}

/** @param {LessonView} view */
function drawTitle(view) {
  const {index, listed, route, parts, go} = view;
  const room = element("div", {class: "course-room", "aria-hidden": "true"});
  const source = element("p", {class: "course-source"});
  const heading = element("div", {class: "course-phrase"}, element("h1", {tabindex: -1}), source, room);
  parts["title"]?.replaceChildren(heading, turnButtons(index, route, go));
  const terms = index.terms.flatMap(([name, meaning]) => [element("dt", {}, name), element("dd", {}, meaning)]);
  const glossary = element("details", {}, element("summary", {}, index.words["glossary"]), element("dl", {}, ...terms));
  parts["glossary"]?.replaceChildren(glossary);
  const idea = listed.idea ? [element("p", {}, listed.idea)] : [];
  parts["idea"]?.replaceChildren(...idea, element("p", {class: "course-premise"}));
}

/** The text that the question is about, if it isn't the course's; and its image or sound.
 * @param {LessonView} view @param {Asked} asked @param {boolean} seen */
function drawAsked({data, parts, index, route}, asked, seen) {
  const own = asked.text === index.texts[route.text] ? "" : asked.text;
  const key = JSON.stringify([own, seen && data.image]);
  const place = parts["asked"];
  if (!place || place.dataset["key"] === key) return;
  place.dataset["key"] = key;
  place.replaceChildren();
  if (own) place.append(element("p", {}, fillWord(index.words["quoted"], "text", own)));
  if (data.sound) place.append(element("audio", {controls: true, src: data.sound, "aria-label": data.shows}));
  if (data.image && !seen) place.append(element("img", {src: data.image, alt: data.shows, width: 300}));
}

/** @param {LessonView} view @param {Asked} asked @param {LessonState | null} state */
function drawQuestion(view, asked, state) {
  const {parts, data} = view;
  const guess = state && ownGuess(view, state);
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

/** The guess, if a state is the one that it was about. @param {LessonView} view @param {LessonState} state */
function ownGuess({data, route}, state) {
  return state === data.states["|"] && isGuess(data.question.data, route.guess) ? route.guess : null;
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
    place.replaceChildren(
      element("p", {}, element("strong", {}, "1"), ` ${words["predict"]}`),
      element("p", {}, data.question.how),
      element("p", {class: "course-later"}, element("strong", {}, "2"), ` ${words["answer"]}`),
    );
    return;
  }
  const found = ownGuess(view, state) && replyTo(state.answer.data, route.guess);
  const reply = found && element("p", {class: "course-reply", "data-kind": found.mark}, found.words);
  const says = element("p", {}, element("strong", {}, "2"), ` ${state.says} `);
  if (state.pressesWord) says.append(element("em", {}, words["pressWord"]));
  place.replaceChildren(...(reply ? [reply] : []), says);
}

/** @param {LessonView} view @param {LessonState} state */
function drawAnswer(view, state) {
  const {parts, data, index} = view;
  const [figure, text] = [/** @type {HTMLElement} */ (parts["figure"]), /** @type {HTMLElement} */ (parts["text"])];
  drawChoices(view, state);
  frame(figure, state.drawn && state.figure !== null, index.words);
  const sheet = /** @type {HTMLElement} */ (
    figure.querySelector(".course-sheet") ?? element("div", {class: "course-sheet", role: "img"})
  );
  figure.append(sheet);
  figure.hidden = state.figure === null;
  if (state.figure) {
    drawFigure(sheet, state.figure, (option) => pressOption(view, option, data.control.words ? "choice" : "word"));
  } else clearFigure(sheet);
  drawProse(text, state.text);
}

/** @param {LessonView} view @param {LessonState} state */
function drawChoices(view, state) {
  const {data, index, parts, choosers} = view;
  const {label, ordered, words} = data.control;
  /** @type {Record<string, Choosing>} */
  const wanted = {
    choice: {name: "choice", label, options: state.options, value: state.choice, ordered, buttons: words},
    word: {
      name: "word",
      label: index.words["queryWord"] ?? "",
      options: state.words,
      value: state.asking,
      buttons: true,
    },
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
  const heading = element(
    "h2",
    {},
    element("strong", {}, "3"),
    ` ${fillWord(index.words["exercise"], "label", listed.exercise)}`,
  );
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
