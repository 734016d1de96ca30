// What was solved, as a file: to go on elsewhere, or to hand in.

import {
  joinProgress,
  keepProgress,
  keptProgress,
  newProgress,
  PROGRESS_FILE,
  progressText,
  readProgressFile,
} from "../lesson/progress.js";
import {element} from "../parts/element.js";

/** @import {CourseIndex} from "./data.js" */

/** @param {CourseIndex} index @param {() => void} changed */
export function makeKeeping({words, language, lessons}, changed) {
  const save = element("button", {type: "button"}, words["save"]);
  save.onclick = () => {
    const course = {...keptProgress().course, lessons: lessons.map(({name}) => name)};
    const text = progressText({...keptProgress(), language, course});
    const link = element("a", {download: PROGRESS_FILE, href: URL.createObjectURL(new Blob([text]))});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const note = element("span", {role: "status"});
  const file = element("input", {type: "file", accept: ".json,application/json", class: "course-file", id: "progress"});
  file.onchange = async () => {
    const [chosen] = file.files ?? [];
    const found = chosen && chosen.size < 1_000_000 ? readProgressFile(await chosen.text()) : null;
    file.value = "";
    note.textContent = found?.progress ? "" : (words["noProgress"] ?? "");
    if (found?.progress) keepProgress(joinProgress(keptProgress(), found.progress));
    changed();
  };
  const open = element("label", {for: file.id, class: "course-button"}, words["open"]);
  const anew = element("button", {type: "button"}, words["anew"]);
  anew.onclick = () => {
    if (!confirm(words["sure"])) return;
    keepProgress(newProgress());
    changed();
  };
  return element("details", {class: "course-keeping"}, element("summary", {}, words["progress"]), save, file, open, anew, note);
}
