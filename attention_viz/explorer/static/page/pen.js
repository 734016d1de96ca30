// A pen for a matrix that Plotly drew: a click touches a cell, a drag several, and so do arrow keys with Space.
//
// Streamlit itself tells of clicks on a chart or of drags, never of both at once. What was touched goes to the server as
// numbered strokes, all that it hasn't seen yet at a time: quick ones would otherwise replace each other on their way.

const pens = new Map();
const STEPS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

export default function penComponent({data, parentElement, setStateValue}) {
  const pen = pens.get(data.chart) ?? {strokes: [], serial: 0, from: null, to: null, pointer: null};
  pens.set(data.chart, pen);
  pen.listening?.abort();
  pen.listening = new AbortController();
  Object.assign(pen, {data, tell: setStateValue, root: parentElement.querySelector(".pen")});
  pen.serial = Math.max(pen.serial, data.seen);
  pen.strokes = pen.strokes.filter(([serial]) => serial > data.seen);
  if (pen.to?.some((place) => place >= data.labels.length)) pen.from = pen.to = null;
  listen(pen, pen.listening);
  explain(pen);
  if (pen.pointer === null && !isFocused(pen)) clear(pen);
  const {listening} = pen;
  return () => {
    listening.abort();
    if (pen.listening === listening) clear(pen);
  };
}

function explain({root, data: {does}}) {
  root.querySelector("span").textContent =
    `Click a cell or drag over several. By keyboard: focus this line; arrows move, Shift takes several, Space ${does}.`;
  root.setAttribute(
    "aria-label",
    `Draw by keyboard: arrow keys move, Shift with them takes several cells, Space ${does} them`,
  );
}

function listen(pen, {signal}) {
  document.addEventListener("pointerdown", (event) => press(pen, event), {signal, capture: true});
  document.addEventListener("pointermove", (event) => move(pen, event), {signal, capture: true});
  document.addEventListener("pointerup", (event) => lift(pen, event), {signal, capture: true});
  document.addEventListener("pointercancel", () => drop(pen), {signal, capture: true});
  pen.root.addEventListener("keydown", (event) => key(pen, event), {signal});
  pen.root.addEventListener("blur", () => clear(pen), {signal});
}

function press(pen, event) {
  if (event.button !== 0 || !isOver(pen, event)) return;
  pen.pointer = event.pointerId;
  pen.from = pen.to = cellAt(pen, event);
  show(pen);
}

function move(pen, event) {
  if (event.pointerId !== pen.pointer) return;
  pen.to = cellAt(pen, event);
  show(pen);
}

function lift(pen, event) {
  if (event.pointerId !== pen.pointer) return;
  pen.pointer = null;
  pen.to = cellAt(pen, event);
  show(pen);
  stroke(pen);
}

function drop(pen) {
  pen.pointer = null;
  clear(pen);
}

function key(pen, event) {
  if (event.key === "Escape" && (pen.pointer !== null || pen.to)) {
    drop(pen);
  } else if (event.key === " " || event.key === "Enter") {
    if (pen.to) stroke(pen);
    else pen.from = pen.to = [0, 0];
  } else if (event.key in STEPS) {
    step(pen, STEPS[event.key], event.shiftKey);
  } else return;
  event.preventDefault();
  if (pen.to) show(pen);
}

function step(pen, [down, right], extend) {
  const last = pen.data.labels.length - 1;
  const [row, column] = pen.to ?? [0, 0];
  const moved = pen.to ? [row + down, column + right] : [0, 0];
  pen.to = moved.map((place) => Math.min(Math.max(place, 0), last));
  if (!extend || !pen.from) pen.from = pen.to;
}

/** Tell the server which cells were touched; whether they are blocked or opened is up to it. */
function stroke(pen) {
  const [top, bottom, left, right] = bounds(pen);
  pen.serial += 1;
  pen.strokes = [...pen.strokes, [pen.serial, pen.data.labels.length, top, bottom, left, right]];
  pen.tell("strokes", pen.strokes);
}

function bounds({from, to}) {
  return [0, 1].flatMap((axis) => [Math.min(from[axis], to[axis]), Math.max(from[axis], to[axis])]);
}

/** Where Plotly hears the pointer: exactly over the cells. Streamlit writes a chart's key into a class around it. */
function areaOf({data}) {
  return document.querySelector(`.st-key-${CSS.escape(data.chart)} .nsewdrag`);
}

/** Where the cells are on the screen; while they are drawn anew, and nothing hears the pointer, where they were. */
function boxOf(pen) {
  const chart = document.querySelector(`.st-key-${CSS.escape(pen.data.chart)}`)?.getBoundingClientRect();
  const cells = areaOf(pen)?.getBoundingClientRect();
  if (!chart) return null;
  if (cells?.height) pen.within = new DOMRect(cells.x - chart.x, cells.y - chart.y, cells.width, cells.height);
  const {within} = pen;
  return within ? new DOMRect(chart.x + within.x, chart.y + within.y, within.width, within.height) : null;
}

function isOver(pen, {target, clientX, clientY}) {
  const area = areaOf(pen);
  if (area?.getBoundingClientRect().height) return area.contains(target);
  const box = boxOf(pen);
  return box !== null && clientX >= box.left && clientX < box.right && clientY >= box.top && clientY < box.bottom;
}

function cellAt(pen, {clientX, clientY}) {
  const box = boxOf(pen);
  if (!box) return pen.to;
  const count = pen.data.labels.length;
  const shares = [(clientY - box.top) / box.height, (clientX - box.left) / box.width];
  return shares.map((share) => Math.min(Math.max(Math.floor(share * count), 0), count - 1));
}

/** Frame the touched cells, and say which they are. */
function show(pen) {
  const area = areaOf(pen);
  const around = area?.closest(".svg-container");
  if (!around) return;
  const [top, bottom, left, right] = bounds(pen);
  const [box, outer] = [boxOf(pen), around.getBoundingClientRect()];
  const [high, wide] = [box.height / pen.data.labels.length, box.width / pen.data.labels.length];
  pen.frame ??= document.createElement("div");
  Object.assign(pen.frame.style, {
    position: "absolute",
    pointerEvents: "none",
    boxSizing: "border-box",
    border: `2.5px solid ${pen.data.colour}`,
    top: `${box.top - outer.top + top * high}px`,
    left: `${box.left - outer.left + left * wide}px`,
    height: `${(bottom - top + 1) * high}px`,
    width: `${(right - left + 1) * wide}px`,
  });
  around.append(pen.frame);
  const {labels} = pen.data;
  const name = (first, last) => (first === last ? `“${labels[first]}”` : `“${labels[first]}” to “${labels[last]}”`);
  pen.root.querySelector("output").textContent = `${name(top, bottom)} looking at ${name(left, right)}`;
}

function clear(pen) {
  pen.frame?.remove();
  pen.from = pen.to = null;
  pen.root.querySelector("output").textContent = "";
}

function isFocused({root}) {
  return root.getRootNode().activeElement === root;
}
