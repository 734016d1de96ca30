// The explorer as a page of its own: the payload stands in the page as base64, the theme follows the reader's system.

import {mountExplorer} from "../explorer.js";

function startPage() {
  const {theme} = document.documentElement.dataset;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const text = atob(document.getElementById("payload").textContent);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const explorer = mountExplorer(document.getElementById("explorer"), bytes, {
    theme: () => (theme === "auto" ? (prefersDark.matches ? "dark" : "light") : theme),
  });
  prefersDark.addEventListener("change", explorer.refresh);
}

startPage();
