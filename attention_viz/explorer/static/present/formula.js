// Formulas on a slide: MathML that the page made of its own formulas.

const MATHML = "http://www.w3.org/1998/Math/MathML";

/** A formula's element; its text alone if it is anything but MathML. @param {string} markup */
export function formulaOf(markup) {
  const {documentElement} = new DOMParser().parseFromString(markup, "application/xml");
  const all = [documentElement, ...documentElement.querySelectorAll("*")];
  const ours = all.every(({namespaceURI}) => namespaceURI === MATHML);
  return ours ? document.importNode(documentElement, true) : (documentElement.textContent ?? "");
}
