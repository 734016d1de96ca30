// What the reader has chosen and points at. Changes are gathered and told once a frame.

/** A store of plain values: `state` to read, `set` to change, `listen` to hear which names changed. */
export function createStore(state) {
  const listeners = new Set();
  let [changed, frame] = [new Set(), 0];
  const tell = () => {
    const names = changed;
    [changed, frame] = [new Set(), 0];
    for (const listener of listeners) listener(names);
  };
  return {
    state,
    set(values) {
      for (const [name, value] of Object.entries(values)) {
        if (Object.is(state[name], value)) continue;
        state[name] = value;
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
