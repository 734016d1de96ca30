// Hands one head of a long text to the component beside it, without the rest of the text being sent again.

import {holdBytes, openChannel} from "./hosting.js";

/** @import {Mounting} from "./hosting.js" */

/** @param {Mounting} mounting */
export default function packetComponent({data}) {
  if (!(data instanceof Uint8Array) || data.length === 0) return;
  const channel = openChannel();
  holdBytes(channel.packets, data);
  channel.target.dispatchEvent(new CustomEvent("packet", {detail: data}));
}
