// Figures and tables come from the server in the colours of the page. When the page goes dark or light while it is open,
// nothing tells the server so: this does, once Streamlit has the new colours itself. As it is on every page, it is what
// tells of a lost server, keeps the browser's history, names landmarks and leads the keyboard through what is open, too.

import {keepOneEntry} from "./history.js";
import {markLandmarks} from "./landmarks.js";
import {tellOfLoss} from "./lost.js";
import {tabThroughMenus} from "./menus.js";

const SETTLED = 50;

/** @param {{setTriggerValue: (name: string, value: unknown) => void}} mounting */
export default function followTheme({setTriggerValue}) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => setTimeout(() => setTriggerValue("changed", dark.matches ? "dark" : "light"), SETTLED);
  dark.addEventListener("change", tell);
  keepOneEntry();
  const ends = [tellOfLoss(), tabThroughMenus(), markLandmarks()];
  return () => {
    dark.removeEventListener("change", tell);
    for (const end of ends) end();
  };
}
