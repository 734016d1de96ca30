// Which rows and columns of a matrix are on the screen: whole cells, from `top` to `bottom` and `left` to `right`.

/**
 * @typedef {object} Viewport
 * @property {number} top  the first row
 * @property {number} bottom  the row after the last one
 * @property {number} left
 * @property {number} right
 * @property {number} rows  how many there are in all
 * @property {number} columns
 */

const FEWEST = 3;

/**
 * A window on everything.
 * @param {number} rows
 * @param {number} columns
 * @returns {Viewport}
 */
export function wholeWindow(rows, columns) {
  return {top: 0, bottom: rows, left: 0, right: columns, rows, columns};
}

/**
 * Whether a window leaves nothing out.
 * @param {Viewport} window
 */
export function isWhole({top, bottom, left, right, rows, columns}) {
  return top === 0 && left === 0 && bottom === rows && right === columns;
}

/**
 * Closer or farther by a factor, so that the cell at (row, column) stays where it is.
 * @param {Viewport} window
 * @param {number} factor
 * @param {number} row
 * @param {number} column
 * @returns {Viewport}
 */
export function zoomed(window, factor, row, column) {
  const [top, bottom] = zoomedAxis(window.top, window.bottom, window.rows, factor, row);
  const [left, right] = zoomedAxis(window.left, window.right, window.columns, factor, column);
  return {...window, top, bottom, left, right};
}

/**
 * @param {number} start
 * @param {number} end
 * @param {number} count
 * @param {number} factor
 * @param {number} at
 */
function zoomedAxis(start, end, count, factor, at) {
  const before = end - start;
  let size = Math.round(before * factor);
  if (size === before) size += Math.sign(factor - 1);
  size = Math.min(Math.max(size, Math.min(FEWEST, count)), count);
  const share = (at + 0.5 - start) / before;
  const first = Math.min(Math.max(Math.round(at + 0.5 - share * size), 0), count - size);
  return [first, first + size];
}

/**
 * Moved by whole rows and columns, as far as there are any.
 * @param {Viewport} window
 * @param {number} rows
 * @param {number} columns
 * @returns {Viewport}
 */
export function panned(window, rows, columns) {
  const down = Math.min(Math.max(rows, -window.top), window.rows - window.bottom);
  const across = Math.min(Math.max(columns, -window.left), window.columns - window.right);
  return {
    ...window,
    top: window.top + down,
    bottom: window.bottom + down,
    left: window.left + across,
    right: window.right + across,
  };
}

/**
 * Moved just so far that a cell is inside.
 * @param {Viewport} window
 * @param {number} row
 * @param {number} column
 */
export function showing(window, row, column) {
  const down = row < window.top ? row - window.top : Math.max(0, row - window.bottom + 1);
  const across = column < window.left ? column - window.left : Math.max(0, column - window.right + 1);
  return panned(window, down, across);
}
