// The explorer as a page of its own: the payload stands in the page as base64, the theme follows the reader's system.

import {mountExplorer} from "../explorer.js";
import {tellParent} from "./parent.js";

function startPage() {
  const theme = document.documentElement.dataset["theme"];
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const [place, payload] = [document.getElementById("explorer"), document.getElementById("payload")];
  if (!place || !payload) throw new Error("the page needs the elements #explorer and #payload");
  const text = atob(payload.textContent ?? "");
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const tell = tellParent(() => explorer.choice());
  const explorer = mountExplorer(place, bytes, {
    onChoice: tell,
    theme: () => (theme === "dark" || (theme === "auto" && prefersDark.matches) ? "dark" : "light"),
  });
  prefersDark.addEventListener("change", explorer.refresh);
}

startPage();
