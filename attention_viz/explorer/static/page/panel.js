// Another package's HTML in a frame without scripts, forms or windows, and without this page's origin.

import {element} from "../parts/element.js";

/** @param {{data: {html: string, title: string, height: number}, parentElement: HTMLElement}} mounting */
export default function panelComponent({data: {html, title, height}, parentElement}) {
  const before = parentElement.querySelector("iframe");
  const frame = before ?? element("iframe", {sandbox: "", referrerpolicy: "no-referrer", "data-testid": "panel"});
  frame.title = title;
  Object.assign(frame.style, {display: "block", width: "100%", height: `${height}px`, border: "0", resize: "vertical"});
  if (frame.srcdoc !== html) frame.srcdoc = html;
  if (!before) parentElement.append(frame);
}
