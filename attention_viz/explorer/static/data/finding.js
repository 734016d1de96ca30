// Finding a token of a long text by what it says or by its position.

/** @import {Axis} from "./tokens.js" */

/**
 * The position that is meant: a number, alone or behind a word that stands there; else the next place with that word
 * after `from`, from the beginning again after the end; null where there is none.
 * @param {Pick<Axis, "spellings" | "count">} axis
 * @param {string} asked
 * @param {number | null} from
 */
export function findToken({spellings, count}, asked, from) {
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
    if (said(next) === text) return next;
  }
  return isPlace ? place : null;
}
