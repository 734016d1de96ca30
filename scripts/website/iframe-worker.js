// The search works in a background worker, which browsers give to no page that was opened by a double click, as a file.
// There its script runs in a hidden frame instead, which hears and answers as a worker would.

class FrameWorker extends EventTarget {
  constructor(address) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    this.ready = new Promise((done) => this.frame.addEventListener("load", done, { once: true }))
      .then(() => this.begin(address));
    document.documentElement.append(this.frame);
  }

  begin(address) {
    const inside = this.frame.contentWindow;
    const load = (script) =>
      new Promise((done, failed) => {
        const element = inside.document.createElement("script");
        Object.assign(element, { src: script, onload: done, onerror: failed });
        inside.document.head.append(element);
      });
    inside.postMessage = (data) => {
      const heard = new MessageEvent("message", { data });
      this.dispatchEvent(heard);
      this.onmessage?.(heard);
    };
    inside.importScripts = (...scripts) => Promise.all(scripts.map(load));
    return load(new URL(address, document.baseURI));
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
