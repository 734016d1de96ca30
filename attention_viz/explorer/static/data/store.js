// What the reader has chosen and points at. Changes are gathered and told once a frame.

/**
 * Values that several elements show: `state` to read, `set` to change, `listen` to hear which names changed.
 * @template {object} S
 * @typedef {object} Store
 * @property {Readonly<S>} state
 * @property {(values: Partial<S>) => void} set
 * @property {(listener: (names: Set<keyof S>) => void) => void} listen
 * @property {() => void} stop
 */

/**
 * A store of plain values.
 * @template {object} S
 * @param {S} state
 * @returns {Store<S>}
 */
export function createStore(state) {
  /** @type {Set<(names: Set<keyof S>) => void>} */
  const listeners = new Set();
  /** @type {Set<keyof S>} */
  let changed = new Set();
  let frame = 0;
  const tell = () => {
    const names = changed;
    changed = new Set();
    frame = 0;
    for (const listener of listeners) listener(names);
  };
  return {
    state,
    set(values) {
      for (const name of /** @type {(keyof S)[]} */ (Object.keys(values))) {
        if (Object.is(state[name], values[name])) continue;
        state[name] = /** @type {S[keyof S]} */ (values[name]);
        changed.add(name);
      }
      if (changed.size && !frame) frame = requestAnimationFrame(tell);
    },
    listen(listener) {
      listeners.add(listener);
    },
    stop() {
      cancelAnimationFrame(frame);
      listeners.clear();
    },
  };
}

/**
 * Whether any of some names is among those that changed.
 * @template N
 * @param {Set<N>} changed
 * @param {...N} names
 */
export function hasAny(changed, ...names) {
  return names.some((name) => changed.has(name));
}
