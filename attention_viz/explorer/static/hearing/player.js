// The sound, to be heard: a file made in the browser of the samples that the model read.

/** Plays a sound, or a part of it, and tells where it is.
 * @typedef {object} Player
 * @property {(from: number, to: number) => void} play
 * @property {() => void} pause
 * @property {() => boolean} isPlaying
 * @property {() => void} leave  lets go of the file */

const [RIFF, WAVE, FORMAT, DATA] = ["RIFF", "WAVE", "fmt ", "data"];
const HEADER = 44;

/** A WAV file of samples of 16 bits and one channel.
 * @param {Uint8Array} samples  little-endian
 * @param {number} rate */
export function wavOf(samples, rate) {
  const file = new Uint8Array(HEADER + samples.length);
  const view = new DataView(file.buffer);
  const write = (/** @type {number} */ at, /** @type {string} */ text) =>
    [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  write(0, RIFF);
  view.setUint32(4, HEADER - 8 + samples.length, true);
  write(8, WAVE);
  write(12, FORMAT);
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, DATA);
  view.setUint32(40, samples.length, true);
  file.set(samples, HEADER);
  return file;
}

/** @param {Uint8Array} samples @param {number} rate
 * @param {(second: number | null) => void} tell  hears where it is, and null once it stands still
 * @returns {Player} */
export function createPlayer(samples, rate, tell) {
  const address = URL.createObjectURL(new Blob([wavOf(samples, rate)], {type: "audio/wav"}));
  const audio = new Audio(address);
  let until = Infinity;
  const tick = () => {
    if (audio.paused || audio.ended || audio.currentTime >= until) {
      audio.pause();
      tell(null);
      return;
    }
    tell(audio.currentTime);
    requestAnimationFrame(tick);
  };
  return {
    play(from, to) {
      until = to;
      audio.currentTime = from;
      // A browser may not play before somebody has pressed something; then nothing is told.
      audio.play().then(tick, () => tell(null));
    },
    pause: () => audio.pause(),
    isPlaying: () => !audio.paused && !audio.ended,
    leave() {
      audio.pause();
      URL.revokeObjectURL(address);
    },
  };
}
