// Whether the address has a guess of a question: an address can have anything, and may be of another text.

/** @import {Question} from "../lesson/predict.js" */

const PERCENT = 100;

/** As `read_guess` in Python. @param {Question} question @param {string} text */
export function isGuess({kind, shares, numbers: [count, most]}, text) {
  if (!/^\d{1,6}(\.\d{1,6})*$/.test(text)) return false;
  const numbers = text.split(".").map(Number);
  const whole = numbers.reduce((sum, one) => sum + one, 0);
  return (
    numbers.length === count && numbers.every((one) => one <= most) && (kind !== "bars" || !shares || whole === PERCENT)
  );
}
