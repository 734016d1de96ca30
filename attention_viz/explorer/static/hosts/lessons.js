// The list of lessons as a Streamlit component.

import {courseComponent} from "../lesson/course.js";

/** @import {Mounting} from "./hosting.js" */

/** @param {Mounting} mounting */
export default function lessonsInStreamlit(mounting) {
  return courseComponent(mounting);
}
