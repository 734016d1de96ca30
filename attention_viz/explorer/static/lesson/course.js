// The list of lessons, as links: Tab stops at one of them, arrows go to the others, and only Enter opens one.

import {arrowStep, element, within} from "../parts/element.js";
import {mountComponent} from "../hosts/component.js";
import {keptProgress, solvedLessons} from "./progress.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js" */

/** A lesson, or a test before or after them; `href` is its address elsewhere than in the app.
 * @typedef {{name: string, title: string, done?: boolean, test?: boolean, href?: string}} Listed */
/** @typedef {Mounted & {list: {label: string, current: string, done: string, lessons: Listed[]}}} Course */

/** Of the address, what belongs to one lesson only. */
const OWN = ["choice", "guess", "word", "answers", "slide", "test"];

/** @param {Mounting} mounting */
export function courseComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-course",
    create: (base) => /** @type {Course} */ (base),
    load(course, list) {
      course.list = list;
      drawCourse(course);
    },
    // What the browser keeps may have changed.
    draw: drawCourse,
    same: (before, data) => JSON.stringify(before) === JSON.stringify(data),
  });
}

/** @param {Course} course */
function drawCourse(course) {
  const {root, list} = course;
  const focused = /** @type {ShadowRoot | Document} */ (root.getRootNode()).activeElement;
  const held = focused instanceof HTMLElement ? focused.dataset["lesson"] : undefined;
  const solved = solvedLessons(keptProgress());
  const links = list.lessons.map(({name, title, done, test = false, href}) => {
    const link = element("a", {href: href ?? addressOf(name, test), "data-lesson": name}, title);
    link.tabIndex = name === list.current ? 0 : -1;
    if (name === list.current) link.setAttribute("aria-current", "page");
    if (done || solved.includes(name))
      link.append(element("span", {class: "av-done", role: "img", "aria-label": list.done}, "\u00a0\u2713"));
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      course.setTriggerValue("open", name);
    });
    return element("li", {}, link);
  });
  const nav = element("nav", {"aria-label": list.label}, element("ol", {}, ...links));
  nav.onkeydown = goAlong;
  root.replaceChildren(nav);
  if (held) /** @type {HTMLElement | null} */ (root.querySelector(`[data-lesson="${held}"]`))?.focus();
}

/** From link to link, by the arrows. @param {KeyboardEvent} event */
function goAlong(event) {
  const [down] = arrowStep(event.key) ?? [0];
  const item = within(event, "li");
  const next = down > 0 ? item?.nextElementSibling : item?.previousElementSibling;
  const link = down ? next?.querySelector("a") : null;
  if (!link) return;
  event.preventDefault();
  link.focus();
}

/** The address of a lesson or a test in the app. @param {string} name @param {boolean} [test] */
export function addressOf(name, test = false) {
  const address = new URL(location.href);
  for (const one of OWN) address.searchParams.delete(one);
  address.searchParams.set(test ? "test" : "lesson", name);
  return `${address.pathname}${address.search}`;
}
