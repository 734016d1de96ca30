// What the two pictures of a sound share: its planes, its spectrogram, the button that plays it, and the cursor.

import {readPlane} from "../data/payload.js";
import {element} from "../parts/element.js";
import {createPlayer} from "./player.js";
import {drawSpectrum} from "./spectrum.js";

/** @import {View, Writes} from "../parts/view.js"
 * @import {PackedSound} from "../data/payload.js"
 * @import {Player} from "./player.js" */

/** @typedef {View & Writes<"direction" | "after" | "aligned" | "loaded" | "query" | "key" | "overQuery" | "overKey">} SoundView */

/** A sound that can be seen and heard.
 * @typedef {object} Hearing
 * @property {HTMLCanvasElement} spectrum
 * @property {HTMLButtonElement} button
 * @property {(from?: number, to?: number) => void} play
 * @property {() => void} paint  the spectrogram, in the page's colours
 * @property {() => number | null} second  where it is played; null where it isn't */

/** @param {SoundView} view @param {PackedSound} packed
 * @param {(second: number | null) => void} tell  hears where it is played
 * @returns {Hearing} */
export function createHearing(view, packed, tell) {
  const spectrum = element("canvas", {class: "av-spectrum", "aria-hidden": "true"});
  const button = element("button", {type: "button", class: "av-play", "data-testid": "play"}, "\u25b6 Play");
  /** @type {Uint8Array | null} */
  let mel = null;
  /** @type {Player | null} */
  let player = null;
  /** @type {number | null} */
  let second = null;
  const told = (/** @type {number | null} */ at) => {
    second = at;
    button.textContent = at === null ? "\u25b6 Play" : "\u275a\u275a Pause";
    // While the explorer is replaced the sound ends with it.
    if (at !== null && !view.root.isConnected) player?.leave();
    tell(at);
  };
  Promise.all([readPlane(view.recording.payload, packed.mel), readPlane(view.recording.payload, packed.at)]).then(
    ([bands, samples]) => {
      mel = bands;
      player = createPlayer(samples, packed.rate, told);
      view.store.set({loaded: view.store.state.loaded + 1});
    },
  );
  const play = (from = 0, to = Infinity) => player?.play(from, to);
  button.onclick = () => (player?.isPlaying() ? player.pause() : play());
  return {
    spectrum,
    button,
    play,
    second: () => second,
    paint: () => {
      if (mel) drawSpectrum(spectrum, mel, packed, view.colours);
    },
  };
}
