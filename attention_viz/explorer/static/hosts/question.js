// A question of the course as a Streamlit component.

import {predictComponent} from "../lesson/predict.js";

/** @import {Mounting} from "./hosting.js" */

/** @param {Mounting} mounting */
export default function questionInStreamlit(mounting) {
  return predictComponent(mounting);
}
