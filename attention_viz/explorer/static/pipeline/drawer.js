// The drawer over the pipeline, which the page fills: it opens at the column that was pressed, and closes by Escape.
//
// The page's own button closes it; this hides it at once, and gives the focus back to where it came from. Before there is
// that button, opening.js closes it.

import {mountComponent} from "../hosts/component.js";
import {openChannel} from "../hosts/hosting.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js" */

const DRAWER = ":is(.st-key-steps-drawer, .st-key-steps-drawer-all)";
const CLOSE = ".st-key-steps-close button";

/** @param {Mounting} mounting */
export default function drawerComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-unseen",
    create: (base) => attendDrawer(base),
    same: (before, data) => before.step === data.step,
    load: (_drawer, data) => announce(data),
    leave() {
      // Another may have taken its place already.
      if (document.querySelector(DRAWER)) return;
      delete openChannel().dismissed;
      tellDrawer(null);
    },
  });
}

/** @param {Mounted} base */
function attendDrawer(base) {
  const {signal} = base;
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("[data-baseweb=popover]")) return;
      closeButton()?.click();
    },
    {signal},
  );
  document.addEventListener(
    "click",
    (event) => {
      if (!(/** @type {Element} */ (event.target).closest(CLOSE))) return;
      openChannel().dismissed = openChannel().drawer ?? undefined;
      hideDrawer(true);
    },
    {signal},
  );
  return base;
}

/** @param {{step: string}} data */
function announce({step}) {
  // The page answers what was pressed before it was closed.
  if (openChannel().dismissed === step) {
    hideDrawer(true);
    return;
  }
  hideDrawer(false);
  tellDrawer(step);
  if (openChannel().pressed === step) closeButton()?.focus({preventScroll: true});
}

function closeButton() {
  const button = document.querySelector(CLOSE);
  return button instanceof HTMLElement ? button : null;
}

/** @param {boolean} hidden */
function hideDrawer(hidden) {
  document.documentElement.style.setProperty("--av-drawer", hidden ? "none" : "flex");
  if (hidden) tellDrawer(null);
}

/** Say which step the drawer shows; null once it is gone. @param {string | null} step */
function tellDrawer(step) {
  const channel = openChannel();
  channel.drawer = step;
  channel.target.dispatchEvent(new CustomEvent("drawer"));
}
