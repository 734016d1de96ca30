// A component of a Streamlit page as a widget of a notebook: the model's bytes and messages in place of the page's.

import {holdBytes, leaveMessage, openChannel} from "./hosting.js";
import {hearModel, openPlace, placedOnPage, themeAround, watchTheme} from "./widget.js";

/** @import {Showing} from "./loading.js" */

// What a component asks for its page's background, by theme.
const PAPER = {light: "#ffffff", dark: "#111111"};

/** @param {Showing} showing */
export default function componentInWidget({model, el, style, html, component}) {
  const ends = new AbortController();
  const place = openPlace(el, style);
  const key = `av-${model.get("_saved")}`;
  el.classList.add(`st-key-${key}`);
  place.append(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  let theme = "";
  const tell = () => {
    handRest(model.get("_rest"));
    for (const message of model.get("_messages")) leaveMessage({...message, explorer: key});
  };
  const show = () => {
    const data = model.get("_data");
    if (!data?.byteLength) {
      model.send({kind: "data"});
      return;
    }
    const now = themeAround(model, el);
    theme = now;
    place.style.setProperty("--st-background-color", PAPER[now]);
    component?.({
      data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
      parentElement: place,
      setStateValue: (/** @type {string} */ name, /** @type {unknown} */ value) =>
        model.send({kind: "chosen", name, value}),
      setTriggerValue: (/** @type {string} */ name, /** @type {unknown} */ value) =>
        model.send({kind: "pressed", name, value}),
    });
  };
  placedOnPage(place, ends.signal).then(() => {
    if (ends.signal.aborted) return;
    tell();
    show();
    hearModel(model, "change:_data", show, ends.signal);
    hearModel(model, "change:_messages", tell, ends.signal);
    watchTheme(() => themeAround(model, el) !== theme && show(), ends.signal);
  });
  return () => ends.abort();
}

/** Hand over what a pipeline says of the rest of its layer; another one on the page may have handed over its own.
 * @param {DataView | undefined} rest */
function handRest(rest) {
  if (!rest?.byteLength) return;
  const channel = openChannel();
  holdBytes(channel.rests, new Uint8Array(rest.buffer, rest.byteOffset, rest.byteLength));
  channel.target.dispatchEvent(new CustomEvent("rest"));
}
