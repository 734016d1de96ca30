// All that each widget brings of its own: it finds the code on the page, in the notebook's model of it, or asks Python.

/** What a notebook's host hands to a widget.
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(name: string, value: unknown) => void} set
 * @property {() => void} save_changes
 * @property {(content: unknown) => void} send
 * @property {(name: string, hear: (...values: any[]) => void) => void} on
 * @property {(name: string, hear: (...values: any[]) => void) => void} off
 * @property {{get_model: (id: string) => Promise<Pick<Model, "get">>}} widget_manager */

/** @typedef {{script: string, style: string, component: string, html: string}} Code */
/** @typedef {{model: Model, el: HTMLElement, style: string, component: Function | null, html: string}} Showing */
/** @typedef {(showing: Showing) => () => void} Show */
/** @typedef {Map<string, {show: Show, code: Code, component: Function | null}>} Held */

const HELD = Symbol.for("attention_viz.code");
// How long another model is waited for, in milliseconds.
const PATIENCE = 2000;

export default function widgetLoader() {
  return {render: renderWidget};
}

/** @param {{model: Model, el: HTMLElement}} place */
async function renderWidget({model, el}) {
  el.classList.add("av-widget");
  hideSaved(model.get("_saved"));
  const {show, code, component} = await codeFor(model);
  return show({model, el, style: code.style, component, html: code.html});
}

/** Hide the picture that is there for readers of the saved notebook. @param {string} name */
function hideSaved(name) {
  const sheet = document.createElement("style");
  const saved = `[data-av-saved="${CSS.escape(name)}"]`;
  sheet.textContent = `${saved}, .jp-OutputArea-child:has(${saved}) {display: none !important;}`;
  document.head.append(sheet);
}

/** @param {Model} model */
async function codeFor(model) {
  const page = /** @type {Record<symbol, Held | undefined>} */ (/** @type {unknown} */ (globalThis));
  const held = (page[HELD] ??= new Map());
  const name = model.get("_code");
  if (!held.has(name)) {
    const code = (await codeOfModel(model)) ?? (await askFor(model));
    const component = code.component ? await importText(code.component) : null;
    held.set(name, {show: await importText(code.script), code, component});
  }
  return /** @type {NonNullable<ReturnType<Held["get"]>>} */ (held.get(name));
}

/** @param {Model} model @returns {Promise<Code | null>} */
async function codeOfModel(model) {
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, null));
  try {
    const found = await Promise.race([model.widget_manager.get_model(model.get("_code_model")), late]);
    return found?.get("parts") ?? null;
  } catch {
    return null;
  }
}

/** @param {Model} model @returns {Promise<Code>} */
function askFor(model) {
  return new Promise((resolve) => {
    const hear = (/** @type {{kind: string, parts: Code}} */ {kind, parts}) => {
      if (kind !== "code") return;
      model.off("msg:custom", hear);
      resolve(parts);
    };
    model.on("msg:custom", hear);
    model.send({kind: "code"});
  });
}

/** @param {string} text */
async function importText(text) {
  const address = URL.createObjectURL(new Blob([text], {type: "text/javascript"}));
  try {
    return (await import(address)).default;
  } finally {
    URL.revokeObjectURL(address);
  }
}
