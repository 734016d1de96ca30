// Scripts that a page loads once it needs them.

/** Load a script; it is gone again if it can't be loaded. @param {string} address @returns {Promise<void>} */
export function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error(address));
    });
    document.head.append(script);
  });
}
