// Hands the rest of a layer to the pipeline beside it, once it is there: the pipeline doesn't wait for another run.

import {holdBytes, openChannel} from "../hosts/hosting.js";

/** @import {Mounting} from "../hosts/hosting.js" */

/** @param {Mounting} mounting */
export default function restComponent({data}) {
  if (!(data instanceof Uint8Array) || data.length === 0) return;
  const channel = openChannel();
  holdBytes(channel.rests, data);
  channel.target.dispatchEvent(new CustomEvent("rest"));
}
