// What a reader does with the record of the course: save it as a file, open one, start anew.

import {saveAs} from "../copy/save.js";
import {element} from "../parts/element.js";
import {
  joinProgress,
  keepProgress,
  keptProgress,
  newProgress,
  progressFileName,
  progressText,
  readProgressFile,
} from "./progress.js";

// More than a file of ours ever has, in bytes; what is larger isn't read.
const LARGEST_OPENED = 1_000_000;

/** `count` has {tried} and {solved} in it; `sure` asks before the record goes.
 * @typedef {Record<"save" | "open" | "anew" | "sure" | "clear" | "cancel" | "count" | "refused", string>} KeepingWords */

/** Show the record's buttons; `onOpened` gets the solved lessons of a file.
 * @param {HTMLElement} root @param {KeepingWords} words
 * @param {{onOpened: (lessons: string[]) => unknown, onCleared: () => unknown}} hear */
export function showKeeping(root, words, {onOpened, onCleared}) {
  const status = element("p", {role: "status"}, progressCount(words));
  const file = element("input", {type: "file", accept: ".json,application/json", hidden: true, tabindex: -1});
  const save = element("button", {type: "button"}, words.save);
  const open = element("button", {type: "button"}, words.open);
  const anew = element("button", {type: "button"}, words.anew);
  const buttons = element("div", {class: "av-keeping-row"}, save, open, anew, file);
  save.addEventListener("click", () => {
    const progress = keptProgress();
    saveAs(new Blob([progressText(progress)], {type: "application/json"}), progressFileName(progress));
  });
  open.addEventListener("click", () => file.click());
  file.addEventListener("change", async () => {
    const [chosen] = file.files ?? [];
    if (!chosen) return;
    const found = chosen.size <= LARGEST_OPENED ? readProgressFile(await chosen.text()) : null;
    file.value = "";
    if (found?.progress) keepProgress(joinProgress(keptProgress(), found.progress));
    status.textContent = found ? progressCount(words) : words.refused;
    if (found) onOpened(found.done);
  });
  const clear = element("button", {type: "button"}, words.clear);
  const cancel = element("button", {type: "button"}, words.cancel);
  const sure = element("div", {class: "av-keeping-row", hidden: true}, clear, cancel);
  /** @param {boolean} asked */
  const ask = (asked) => {
    sure.hidden = !asked;
    buttons.hidden = asked;
    status.textContent = asked ? words.sure : progressCount(words);
    (asked ? cancel : anew).focus();
  };
  anew.addEventListener("click", () => ask(true));
  cancel.addEventListener("click", () => ask(false));
  clear.addEventListener("click", () => {
    keepProgress(newProgress());
    ask(false);
    onCleared();
  });
  root.replaceChildren(status, buttons, sure);
}

/** @param {KeepingWords} words */
function progressCount({count}) {
  const {exercises} = keptProgress();
  const solved = exercises.filter((one) => one.solved).length;
  return count.replace("{tried}", String(exercises.length)).replace("{solved}", String(solved));
}
