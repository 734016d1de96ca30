// Hands the page's own choice of a head to the component beside it, without the weights being sent again.

import {leaveMessage} from "./hosting.js";

/** @import {Message, Mounting} from "./hosting.js" */

/** @param {Mounting} mounting */
export default function channelComponent({data}) {
  return leaveMessage(/** @type {Message} */ (data));
}
