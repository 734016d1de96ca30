// Back and Next: from the test before the lessons, along them, to the test after.

import {element} from "../parts/element.js";
import {beginAt} from "./route.js";

/** @import {CourseIndex} from "./data.js"
 * @import {Route} from "./route.js" */

/** @typedef {{title: string, to: Partial<Route>, test: boolean}} Stop */

/** All that the course leads through, in order. @param {Pick<CourseIndex, "lessons" | "tests">} index @returns {Stop[]} */
export function courseStops({lessons, tests}) {
  const along = lessons.map(({name, title}) => ({title, to: {lesson: name}, test: false}));
  const asked = tests.map(({part, heading}) => ({title: heading, to: {test: part}, test: true}));
  return [...asked.slice(0, 1), ...along, ...asked.slice(1)];
}

/** The stops around a route's. @param {Pick<CourseIndex, "lessons" | "tests">} index @param {Route} route
 * @returns {{before: Stop | undefined, after: Stop | undefined}} */
export function stopsAround(index, {test, lesson}) {
  const stops = courseStops(index);
  const at = stops.findIndex(({to}) => (test ? to.test === test : to.lesson === lesson));
  return {before: stops[at - 1], after: stops[at + 1]};
}

/** The two buttons; into a test and out of one, they name where they lead.
 * @param {CourseIndex} index @param {Route} route @param {(route: Route) => void} go */
export function turnButtons(index, route, go) {
  const {before, after} = stopsAround(index, route);
  /** @param {Stop | undefined} stop @param {string | undefined} plain @param {(title: string) => string} named */
  const turn = (stop, plain, named) => {
    const words = stop && (stop.test || route.test) ? named(stop.title) : plain;
    const button = element("button", {type: "button", disabled: !stop}, words);
    if (stop) button.onclick = () => go(beginAt(route, stop.to));
    return button;
  };
  return element(
    "div",
    {class: "course-turn"},
    turn(before, index.words["back"], (title) => `← ${title}`),
    turn(after, index.words["next"], (title) => `${title} →`),
  );
}
