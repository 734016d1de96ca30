// Whether the address has a guess of a question: an address can have anything, and may be of another text.

/** @import {Question} from "../lesson/predict.js" */

const PERCENT = 100;

/** How many numbers a guess has, and the most that one can be, as `accepts` has it in Python.
 * @param {Question} question @returns {[count: number, most: number]} */
function shapeOf({kind, opening, options, shares}) {
  /** @type {Record<string, [number, number]>} */
  const shapes = {
    map: [2, PERCENT],
    turn: [1, 359],
    sliders: [opening.names?.length, opening.steps],
    mask: [opening.names?.length, 2 ** (opening.names?.length ?? 0) - 1],
    lines: [opening.written?.length, opening.read?.length],
  };
  return shapes[kind] ?? (shares && kind === "bars" ? [options.length, PERCENT] : [1, options.length - 1]);
}

/** @param {Question} question @param {string} text */
export function isGuess(question, text) {
  if (!/^\d{1,6}(\.\d{1,6})*$/.test(text)) return false;
  const [numbers, [count, most]] = [text.split(".").map(Number), shapeOf(question)];
  const whole = numbers.reduce((sum, one) => sum + one, 0);
  const shares = question.kind === "bars" && question.shares;
  return numbers.length === count && numbers.every((one) => one <= most) && (!shares || whole === PERCENT);
}
