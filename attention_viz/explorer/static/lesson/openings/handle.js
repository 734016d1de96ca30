// A handle that is dragged by a pointer, or moved by the arrow keys.

import {arrowStep} from "../../parts/element.js";

/** Follow a pointer from its press until it is let go. @param {Element} handle
 * @param {(event: PointerEvent) => void} follow */
export function followPointer(handle, follow) {
  handle.addEventListener("pointerdown", (event) =>
    handle.setPointerCapture(/** @type {PointerEvent} */ (event).pointerId),
  );
  handle.addEventListener("pointermove", (event) => {
    const moved = /** @type {PointerEvent} */ (event);
    if (handle.hasPointerCapture(moved.pointerId)) follow(moved);
  });
}

/** Move a handle in a field: it follows a press anywhere, a pointer that drags it, and the arrow keys.
 * @param {SVGElement} field @param {SVGElement} handle
 * @param {{follow: (event: MouseEvent) => void, step: (down: number, across: number) => void}} ways */
export function moveHandle(field, handle, {follow, step}) {
  field.addEventListener("click", follow);
  followPointer(handle, follow);
  handle.addEventListener("keydown", (event) => {
    const [down, across] = arrowStep(event.key) ?? [0, 0];
    if (!down && !across) return;
    event.preventDefault();
    step(down, across);
  });
  field.append(handle);
}
