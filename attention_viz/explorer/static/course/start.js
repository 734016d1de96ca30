// The course as a page of its own: it follows the address, shows the list of lessons, and keeps what was solved.

import {courseComponent} from "../lesson/course.js";
import {showKeeping} from "../lesson/keeping.js";
import {addNote, keepProgress, keptProgress, solvedLessons} from "../lesson/progress.js";
import {showQuiz} from "../lesson/quiz.js";
import {fitToPaper} from "../page/fitting.js";
import {element} from "../parts/element.js";
import {courseIndex, lessonData, receiveData} from "./data.js";
import {isGuess} from "./guesses.js";
import {openLesson, showLesson} from "./lesson.js";
import {beginAt, readRoute, recordedSeed, writeRoute} from "./route.js";
import {courseStops, turnButtons} from "./turn.js";

/** @import {CourseIndex, LessonData} from "./data.js"
 * @import {LessonView} from "./lesson.js"
 * @import {Route} from "./route.js" */

/** @typedef {{index: CourseIndex, route: Route, view: LessonView | null, main: HTMLElement, nav: HTMLElement,
 *   news: HTMLElement, top: HTMLElement}} CoursePage */

/** @param {string} id @returns {HTMLElement} */
function place(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page needs the element #${id}`);
  return found;
}

async function startCourse() {
  receiveData();
  const index = await courseIndex();
  const route = readRoute(location.hash, index);
  /** @type {CoursePage} */
  const page = {
    index,
    route,
    view: null,
    main: place("lesson"),
    nav: place("lessons"),
    news: place("news"),
    top: place("top"),
  };
  place("skip").onclick = (event) => {
    event.preventDefault();
    page.main.focus();
  };
  drawTop(page);
  addEventListener("hashchange", () => follow(page, readRoute(location.hash, index)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.view && showLesson(page.view));
  fitToPaper();
  await follow(page, route);
}

/** @param {CoursePage} page @param {Route} route */
function goTo(page, route) {
  const hash = writeRoute(route);
  const {test, lesson, text, guess} = page.route;
  // Back leads to lessons and answers, not to every step of a slider.
  if (route.test !== test || route.lesson !== lesson || route.text !== text || !route.guess !== !guess)
    location.hash = hash;
  else location.replace(hash);
}

/** @param {CoursePage} page @param {Route} route */
async function follow(page, route) {
  const {index, view} = page;
  const stays =
    !route.test &&
    view?.route.lesson === route.lesson &&
    view.route.text === route.text &&
    view.route.seed === route.seed;
  const turned = page.main.querySelector("h1") !== null && !stays;
  const {test, lesson, text} = page.route;
  const another = test !== route.test || lesson !== route.lesson || text !== route.text;
  const begin = () => turned && beginReading(page, another);
  page.route = route;
  drawList(page);
  if (route.test) {
    page.view = null;
    showTest(page);
    begin();
    return;
  }
  if (view && stays) {
    if (mended(view.data, route)) return;
    view.route = route;
    if (showLesson(view)) tellOf(page);
    return;
  }
  const listed = index.lessons.find(({name}) => name === route.lesson);
  const file = listed?.files[route.text];
  if (!listed || !file) return;
  /** @type {LessonData} */
  let data;
  try {
    data = await lessonData(file);
  } catch {
    page.main.replaceChildren(element("h1", {tabindex: -1}, index.words["noFile"]?.replace("{file}", file)));
    return;
  }
  if (page.route !== route) return;
  document.title = `${listed.title} · ${index.words["course"]}`;
  if (data.missing) {
    page.view = null;
    page.main.replaceChildren(element("h1", {tabindex: -1}, listed.title), element("p", {}, data.missing));
    begin();
    return;
  }
  if (mended(data, route)) return;
  page.view = openLesson({
    ...{index, listed, data, route, root: page.main},
    go: (to) => goTo(page, to),
    note(note) {
      keepProgress(addNote({...keptProgress(), language: index.language}, note));
      drawList(page);
    },
  });
  showLesson(page.view);
  begin();
}

/** Lead the keyboard to the heading; another lesson, text or test is read from its top.
 * @param {CoursePage} page @param {boolean} another */
function beginReading({main}, another) {
  main.querySelector("h1")?.focus({preventScroll: another});
  if (another) scrollTo(0, 0);
}

/** Whether the address named an exercise or a guess that the lesson doesn't have, and now has another.
 * @param {LessonData} data @param {Route} route */
function mended({question, exercises}, route) {
  const seed = recordedSeed(exercises, route.seed);
  const guess = route.guess === "shown" || isGuess(question.data, route.guess) ? route.guess : "";
  if (seed === route.seed && guess === route.guess) return false;
  location.replace(writeRoute({...route, seed, guess}));
  return true;
}

/** Lead eyes, ears and the keyboard to the answer. @param {CoursePage} page */
function tellOf({main, news}) {
  const heading = main.querySelector("h1");
  news.textContent = [heading?.textContent, main.querySelector(".course-predict .course-reply")?.textContent].join(" ");
  heading?.focus({preventScroll: true});
  heading?.scrollIntoView({block: "nearest"});
}

/** @param {CoursePage} page */
function drawList(page) {
  const {index, route, nav} = page;
  const solved = solvedLessons(keptProgress());
  const listed = courseStops(index).map(({title, to}) => ({
    ...{name: to.test ?? to.lesson ?? "", title, done: solved.includes(to.lesson ?? "")},
    href: writeRoute(beginAt(route, to)),
  }));
  courseComponent({
    data: {
      label: index.words["lessons"],
      done: index.words["solved"],
      current: route.test || route.lesson,
      lessons: listed,
    },
    parentElement: nav,
    setStateValue: () => {},
    setTriggerValue(_, name) {
      const to = index.tests.some(({part}) => part === name) ? {test: String(name)} : {lesson: String(name)};
      goTo(page, beginAt(page.route, to));
    },
  });
}

/** @param {CoursePage} page */
function showTest(page) {
  const {index, route, main} = page;
  const quiz = index.tests.find(({part}) => part === route.test);
  if (!quiz) return;
  const heading = element("h1", {tabindex: -1}, quiz.heading);
  const root = element("div", {class: "av-test"});
  const turn = turnButtons(index, route, (to) => goTo(page, to));
  main.replaceChildren(
    element("div", {class: "course-title"}, element("div", {class: "course-phrase"}, heading), turn),
    root,
  );
  document.title = `${quiz.heading} · ${index.words["course"]}`;
  const at = (/** @type {string} */ lesson) => beginAt(route, {lesson});
  showQuiz(root, quiz, {
    whose: {language: index.language},
    addressOf: (lesson) => (index.lessons.some(({name}) => name === lesson) ? writeRoute(at(lesson)) : ""),
    open: (lesson) => goTo(page, at(lesson)),
    onFinish() {
      heading.focus();
      scrollTo(0, 0);
    },
  });
}

/** The texts to choose from, and what was solved as a file. @param {CoursePage} page */
function drawTop(page) {
  const {index, top} = page;
  const list = element("select", {id: "text"});
  index.texts.forEach((text, at) =>
    list.append(element("option", {value: at, selected: at === page.route.text}, text)),
  );
  list.onchange = () => goTo(page, beginAt(page.route, {text: Number(list.value)}));
  addEventListener("hashchange", () => (list.value = String(readRoute(location.hash, index).text)));
  const label = element("label", {for: "text"}, index.words["text"]);
  const only = element("span", {class: "course-only"}, `${index.words["text"]}: “${index.texts[0]}”`);
  const chooser = index.texts.length > 1 ? element("div", {class: "course-choice"}, label, list) : only;
  const kept = element("div", {class: "av-keeping"});
  const changed = () => {
    drawList(page);
    if (page.route.test) showTest(page);
  };
  showKeeping(kept, index.keeping, {onOpened: changed, onCleared: changed});
  const summary = element("summary", {}, index.words["progress"]);
  // What was solved meanwhile counts, too.
  const details = element("details", {class: "course-keeping"}, summary, kept);
  details.ontoggle = () => details.open && showKeeping(kept, index.keeping, {onOpened: changed, onCleared: changed});
  top.replaceChildren(chooser, details);
}

startCourse();
