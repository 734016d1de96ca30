// Hands the maps of one head of a long text to the component beside it, ahead of the head's numbers.

import {openChannel} from "./hosting.js";

/** @import {Mounting} from "./hosting.js" */

/** @param {Mounting} mounting */
export default function beginningComponent({data}) {
  if (!(data instanceof Uint8Array) || data.length === 0) return;
  openChannel().target.dispatchEvent(new CustomEvent("packet", {detail: data}));
}
