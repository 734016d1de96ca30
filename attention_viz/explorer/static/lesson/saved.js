// The record's buttons on a Streamlit page, which only hears of solved lessons.

import {mountComponent} from "../hosts/component.js";
import {showKeeping} from "./keeping.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js"
 * @import {KeepingWords} from "./keeping.js" */

/** @param {Mounting} mounting */
export default function savedComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-keeping",
    create: (base) => base,
    load: (/** @type {Mounted} */ component, /** @type {KeepingWords} */ words) =>
      showKeeping(component.root, words, {
        onOpened: (lessons) => component.setTriggerValue("opened", lessons),
        onCleared: () => component.setTriggerValue("cleared", true),
      }),
    same: (before, words) => JSON.stringify(before) === JSON.stringify(words),
  });
}
