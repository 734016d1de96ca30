// Hands the page's own choice of a head to the component beside it, without the weights being sent again.

import {openChannel, subjectOf} from "./hosting.js";

/** @import {Message, Mounting} from "./hosting.js" */

/** @param {Mounting} mounting */
export default function channelComponent({data}) {
  const message = /** @type {Message} */ (data);
  const channel = openChannel();
  const name = subjectOf(message);
  channel.latest.set(name, message);
  channel.target.dispatchEvent(new CustomEvent("choice", {detail: message}));
  return () => {
    if (channel.latest.get(name) === message) channel.latest.delete(name);
  };
}
