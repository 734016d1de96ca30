// Where the cards of the roles stand: below the atlas, or on a phone behind the chosen head.

import {openChannel} from "../hosts/hosting.js";

/** @import {Atlas} from "./grid.js" */

// The same width as in the page's style sheet.
const PHONE = "(max-width: 640px)";

/**
 * Put the cards where they belong; on a phone they are kept back until the place for them is there.
 * @param {Atlas} atlas
 */
export function placeCards({root, cards, card}) {
  const {behind} = openChannel();
  if (!matchMedia(PHONE).matches) {
    if (cards.node.parentNode !== root) root.insertBefore(cards.node, card.node);
  } else if (!behind?.isConnected) {
    cards.node.remove();
  } else {
    behind.dataset["theme"] = root.dataset["theme"];
    if (cards.node.parentNode !== behind) behind.replaceChildren(cards.node);
  }
}

/**
 * Place them anew whenever the place comes, or the window becomes as narrow as a phone or wider.
 * @param {Atlas} atlas
 * @param {AbortSignal} signal
 */
export function followPlace(atlas, signal) {
  const place = () => placeCards(atlas);
  openChannel().target.addEventListener("behind", place, {signal});
  matchMedia(PHONE).addEventListener("change", place, {signal});
}
