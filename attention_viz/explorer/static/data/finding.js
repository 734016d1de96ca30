// Finding a token of a long text by what it says or by its position.

/** @import {Axis} from "./tokens.js" */

import {textOf} from "./spelling.js";

/** @typedef {Pick<Axis, "labels" | "spelling" | "spellings" | "count">} Searched */

// Pieces that a word is looked for in at most.
const MOST_PIECES = 64;

/**
 * The position that is meant: a number, alone or behind a word that stands there; else the next place with that word
 * after `from`, from the beginning again after the end; null where there is none. Of a word in several pieces it is the
 * first of them.
 * @param {Searched} axis
 * @param {string} asked
 * @param {number | null} from
 */
export function findToken(axis, asked, from) {
  const {spellings, count} = axis;
  const wanted = asked.trim().toLowerCase();
  const said = (/** @type {number} */ place) => spellings[place].text.trim().toLowerCase();
  const [, word, number] = /^(.*?)\s*(\d+)$/su.exec(wanted) ?? [null, wanted, ""];
  const place = Number(number);
  const isPlace = number !== "" && place < count && (word === "" || said(place) === word);
  // Its own place stands behind the word that is shown: to ask for it again is to ask for the next.
  if (isPlace && place !== from) return place;
  const text = isPlace && word ? word : wanted;
  if (text === "") return null;
  for (let step = 1; step <= count; step++) {
    const next = ((from ?? -1) + step) % count;
    if (said(next) === text || beginsHere(axis, next, text)) return next;
  }
  return isPlace ? place : null;
}

/**
 * Whether the pieces from a position on are together what is looked for.
 * @param {Searched} axis
 * @param {number} place
 * @param {string} wanted  in small letters
 */
function beginsHere({labels, spelling, count}, place, wanted) {
  const end = Math.min(count, place + MOST_PIECES);
  for (let after = place + 1; after <= end && spelling[after - 1] === spelling[place]; after += 1) {
    const text = textOf(labels.slice(place, after), spelling[place]).trim().toLowerCase();
    if (text === wanted) return text !== "";
    // Bytes that are half a character so far may become part of it.
    const whole = text.replace(/[\udc80-\udcff]+$/u, "");
    if (!wanted.startsWith(whole) || (whole === "" && text === "")) return false;
  }
  return false;
}
