// A place behind the chosen head, where the atlas puts the cards of its roles on a phone: beside it there is no room, and
// above it they would push the head off the screen.

import {openChannel} from "../hosts/hosting.js";

/** @import {Mounting} from "../hosts/hosting.js" */

/** @param {Mounting} mounting */
export default function behindComponent({parentElement}) {
  const channel = openChannel();
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(".av-behind"));
  if (channel.behind === root) return;
  channel.behind = root;
  channel.target.dispatchEvent(new CustomEvent("behind"));
}
