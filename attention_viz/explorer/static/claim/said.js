// A sentence in parts, some of which have a role: a colour or a weight.

/** The parts of a template: its own words have no role, what stands in it may have one.
 * @template {string} R @param {TemplateStringsArray} words
 * @param {...(string | number | [text: string, role: R] | [text: string, role: R][])} values
 * @returns {[text: string, role: R | ""][]} */
export function said(words, ...values) {
  /** @type {[text: string, role: R | ""][]} */
  const parts = [];
  let plain = "";
  words.forEach((text, at) => {
    const value = values[at] ?? [];
    plain += text;
    if (!Array.isArray(value)) plain += value;
    else {
      if (plain) parts.push([plain, ""]);
      plain = "";
      parts.push(.../** @type {[string, R][]} */ (typeof value[0] === "string" ? [value] : value));
    }
  });
  return parts;
}
