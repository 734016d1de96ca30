// The test of learning on a Streamlit page, which hears of no answer.

import {mountComponent} from "../hosts/component.js";
import {attendToHeading} from "../page/attending.js";
import {addressOf} from "./course.js";
import {PROGRESS_KEPT, keptProgress} from "./progress.js";
import {showQuiz} from "./quiz.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js"
 * @import {Quiz, Whose} from "./quiz.js" */

/** `lessons` are those that the page has. @typedef {Quiz & {lessons: string[], whose: Whose}} PageQuiz */
/** `taken` are the answers that it shows. @typedef {Mounted & {taken: string}} Tested */

/** @param {Mounting} mounting */
export default function testedComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-test",
    create(base) {
      const component = /** @type {Tested} */ ({...base, taken: ""});
      // The record may be cleared, or another one opened.
      const follow = () => {
        if (component.taken !== takenAnswers(component.data)) drawTest(component, component.data);
      };
      addEventListener(PROGRESS_KEPT, follow, {signal: base.signal});
      return component;
    },
    load: drawTest,
    same: (before, quiz) => JSON.stringify(before) === JSON.stringify(quiz),
  });
}

/** @param {Tested} component @param {PageQuiz} quiz */
function drawTest(component, quiz) {
  component.taken = takenAnswers(quiz);
  showQuiz(component.root, quiz, {
    whose: quiz.whose,
    addressOf: (lesson) => (quiz.lessons.includes(lesson) ? addressOf(lesson) : ""),
    open: (lesson) => component.setTriggerValue("open", lesson),
    onFinish: () => attendToHeading(),
  });
}

/** @param {Quiz} quiz */
function takenAnswers({part}) {
  return JSON.stringify(keptProgress().test[part]);
}
