// Keeps what the page noted of a student's exercises: the page itself forgets it.

import {addNote, keepProgress, keptProgress} from "./progress.js";

/** @import {Mounting} from "../hosts/hosting.js"
 * @import {ProgressNote} from "./progress.js" */

/** The last notes of a visit, each with its number from 1; `course` and `language` as in a record.
 * @typedef {{visit: string, notes: (ProgressNote & {number: number})[], language: string,
 *   course: {lessons: string[], student: number}}} NotesOfVisit */

/** Of which visit to the page how many notes are kept: a page that is drawn again brings the same ones. */
let [notedVisit, notedCount] = ["", 0];

/** @param {Pick<Mounting, "data">} mounting */
export default function notedComponent({data}) {
  const {visit, notes, language, course} = /** @type {NotesOfVisit} */ (/** @type {unknown} */ (data));
  if (visit !== notedVisit) [notedVisit, notedCount] = [visit, 0];
  const fresh = notes.filter((one) => one.number > notedCount);
  if (!fresh.length) return;
  notedCount = fresh.at(-1)?.number ?? notedCount;
  const progress = {...keptProgress(), language, course};
  keepProgress(fresh.reduce(addNote, progress));
}
