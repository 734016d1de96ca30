// A sheet of nine places to draw shapes on: choose a colour and a shape, then press a place. The page gets the drawing's
// name, and draws the image itself.

import {mountComponent} from "../hosts/component.js";
import {arrowStep, element, focusOne, svg} from "../parts/element.js";

/** @import {Mounted} from "../hosts/component.js"
 * @import {Mounting} from "../hosts/hosting.js" */

/** A shape by the names of its colour and form.
 * @typedef {{colour: string, shape: string}} Look */

/** The sheet, in pixels of the image: `centres` of rows and columns, `radius` of a shape. `drawn` has the look in each
 * place, by the place's name, such as "top-left".
 * @typedef {{side: number, ground: string, centres: number[], radius: number, colours: Record<string, string>,
 *   shapes: string[], rows: string[], columns: string[], most: number, drawn: Record<string, Look>}} Sheet */

/** @typedef {Mounted & {sheet: Sheet, look: Look, drawn: Record<string, Look>, places: HTMLButtonElement[],
 *   preview: SVGElement, status: HTMLElement, show: HTMLButtonElement}} Drawing */

const RING = Math.sqrt(0.3);
// Outlines from -1 to 1, right and down; with the hole of the ring, filled where they overlap an odd number of times.
/** @type {Record<string, string>} */
const OUTLINES = {
  circle: round(1),
  square: "M-.9-.9H.9V.9H-.9Z",
  triangle: "M0-.9L1 .9H-1Z",
  diamond: "M0-1L1 0L0 1L-1 0Z",
  cross: "M-.33-1H.33V-.33H1V.33H.33V1H-.33V.33H-1V-.33H-.33Z",
  ring: round(1) + round(RING),
};

/** @param {number} radius */
function round(radius) {
  return `M-${radius} 0A${radius} ${radius} 0 1 1 ${radius} 0A${radius} ${radius} 0 1 1 -${radius} 0Z`;
}

/** @param {Mounting} mounting */
export default function drawingComponent(mounting) {
  return mountComponent(mounting, {
    selector: ".av-drawing",
    create: (base) => /** @type {Drawing} */ (base),
    load: loadSheet,
    same: (before, sheet) => JSON.stringify(before) === JSON.stringify(sheet),
  });
}

/** @param {Drawing} drawing @param {Sheet} sheet */
function loadSheet(drawing, sheet) {
  const look = drawing.look ?? {colour: Object.keys(sheet.colours)[0], shape: sheet.shapes[0]};
  const preview = svg("svg", {viewBox: `0 0 ${sheet.side} ${sheet.side}`, "aria-hidden": "true"});
  preview.style.background = sheet.ground;
  const places = sheet.rows.flatMap((row) =>
    sheet.columns.map((column) => {
      const attributes = {type: "button", "data-place": `${row}-${column}`, onclick: () => press(drawing, row, column)};
      return element("button", {...attributes, tabindex: row + column === sheet.rows[0] + sheet.columns[0] ? 0 : -1});
    }),
  );
  const status = element("p", {class: "av-quiet", role: "status"});
  const show = element("button", {type: "button", class: "av-draw-show"}, "Show drawing");
  show.onclick = () => drawing.setTriggerValue("drawn", nameOf(drawing));
  Object.assign(drawing, {sheet, look, drawn: {...sheet.drawn}, places, preview, status, show});
  const board = element("div", {class: "av-draw-sheet", role: "group", "aria-label": "Places"}, preview, ...places);
  board.onkeydown = (event) => walk(drawing, event);
  const colours = choices(drawing, "Colour", "colour", Object.keys(sheet.colours));
  const tools = element("div", {class: "av-draw-tools"}, colours, choices(drawing, "Shape", "shape", sheet.shapes));
  const foot = element("div", {class: "av-draw-foot"}, show, status);
  drawing.root.replaceChildren(board, tools, foot);
  drawSheet(drawing, "");
}

/** Radio buttons, each with a picture of what it stands for.
 * @param {Drawing} drawing @param {string} legend @param {"colour" | "shape"} of @param {string[]} names */
function choices(drawing, legend, of, names) {
  const {sheet, look} = drawing;
  const labels = names.map((name) => {
    const choose = () => Object.assign(drawing.look, {[of]: name});
    const input = element("input", {type: "radio", name: `av-draw-${of}`, value: name, onchange: choose});
    input.checked = look[of] === name;
    const icon = svg("svg", {viewBox: "-1.1 -1.1 2.2 2.2", "aria-hidden": "true"});
    const fill = of === "colour" ? sheet.colours[name] : "currentColor";
    icon.append(svg("path", {d: OUTLINES[of === "shape" ? name : "circle"], fill, "fill-rule": "evenodd"}));
    return element("label", {}, input, element("span", {}, icon, name));
  });
  return element("fieldset", {}, element("legend", {}, legend), ...labels);
}

/** Put the chosen look into an empty place, from where it is by now: no two shapes look alike. Or empty the place.
 * @param {Drawing} drawing @param {string} row @param {string} column */
function press(drawing, row, column) {
  const {drawn, look, sheet} = drawing;
  const place = `${row}-${column}`;
  const twin = Object.keys(drawn).find((one) => drawn[one].colour === look.colour && drawn[one].shape === look.shape);
  const isFull = Object.keys(drawn).length >= sheet.most;
  let told = "";
  if (drawn[place]) delete drawn[place];
  else if (!twin && isFull) told = `The model knows images of ${sheet.most} shapes at most.`;
  else {
    if (twin) told = `The ${look.colour} ${look.shape} moved here: no two shapes look alike.`;
    if (twin) delete drawn[twin];
    drawn[place] = {...look};
  }
  drawSheet(drawing, told);
}

/** @param {Drawing} drawing @param {KeyboardEvent} event */
function walk(drawing, event) {
  const {places, sheet, drawn} = drawing;
  const at = places.indexOf(/** @type {HTMLButtonElement} */ (event.target));
  const [down, across] = arrowStep(event.key) ?? [0, 0];
  const count = sheet.columns.length;
  const [row, column] = [Math.floor(at / count) + down, (at % count) + across];
  if (down || across) {
    if (row >= 0 && row < sheet.rows.length && column >= 0 && column < count)
      focusOne(places, places[row * count + column]);
  } else if (event.key === "Delete" || event.key === "Backspace") {
    delete drawn[places[at].dataset["place"] ?? ""];
    drawSheet(drawing, "");
  } else return;
  event.preventDefault();
}

/** @param {Drawing} drawing @param {string} problem */
function drawSheet({sheet, drawn, places, preview, status, show}, problem) {
  const paths = sheet.rows.flatMap((row, down) =>
    sheet.columns.map((column, across) => {
      const there = drawn[`${row}-${column}`];
      if (!there) return null;
      const transform = `translate(${sheet.centres[across]} ${sheet.centres[down]}) scale(${sheet.radius})`;
      const fill = sheet.colours[there.colour];
      return svg("path", {d: OUTLINES[there.shape], fill, "fill-rule": "evenodd", transform});
    }),
  );
  preview.replaceChildren(...paths.filter((path) => path !== null));
  for (const place of places) {
    const name = place.dataset["place"] ?? "";
    const there = drawn[name];
    place.setAttribute("aria-label", `${words(name)}: ${there ? `${there.colour} ${there.shape}` : "empty"}`);
  }
  const count = Object.keys(drawn).length;
  show.disabled = count === 0;
  const hint = count === 0 ? "Press a place to put the shape there." : "Press a shape to remove it.";
  status.textContent = problem || hint;
}

/** The drawing's name, as it is in the URL, in reading order. @param {Drawing} drawing */
function nameOf({places, drawn}) {
  const names = places.map((place) => place.dataset["place"] ?? "").filter((name) => name in drawn);
  return ["drawn", ...names.map((name) => `${drawn[name].colour}-${drawn[name].shape}-${name}`)].join(".");
}

/** @param {string} place */
function words(place) {
  return place.replace("-", " ");
}
