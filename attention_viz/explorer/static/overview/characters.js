// Characters that the tokenizer cut into bytes: which bytes of which character a token has.

import {visible} from "../data/spelling.js";

/** A character whose bytes are in several tokens, or half a one: its text, "" where the other bytes are missing, the
 * first of its tokens, and how many bytes each has.
 * @typedef {[text: string, first: number, counts: number[]]} PackedCharacter */

/** What a token has of a character: its bytes from `from` to `to`, of `of`; `text` is "" of half a character.
 * @typedef {{text: string, from: number, to: number, of: number, group: number}} CharacterPart */

/** For each token that has a part of a character, the first such part. @param {PackedCharacter[]} packed
 * @returns {Map<number, CharacterPart>} */
export function readCharacters(packed) {
  /** @type {Map<number, CharacterPart>} */
  const parts = new Map();
  packed.forEach(([text, first, counts], group) => {
    const of = counts.reduce((sum, count) => sum + count, 0);
    let to = 0;
    counts.forEach((count, along) => {
      to += count;
      const place = first + along;
      if (!parts.has(place)) parts.set(place, {text: text && visible(text), from: to - count + 1, to, of, group});
    });
  });
  return parts;
}

/** A token's text with the whole character before its bytes: "ก⟨E0⟩". @param {string} text
 * @param {CharacterPart} [part] */
export function withCharacter(text, part) {
  if (!part) return text;
  const before = part.from === 1 ? text.lastIndexOf("\u27e8") : 0;
  return text.slice(0, before) + part.text + text.slice(before);
}

/** A part in words: "ก, byte 1 of 3". @param {CharacterPart} part @param {string} written  the token's bytes */
export function partInWords({text, from, to, of}, written) {
  if (text === "") return `part of a character, ${written}`;
  return `${text}, ${from === to ? `byte ${from}` : `bytes ${from} to ${to}`} of ${of}`;
}

/** Tokens of a line, those of one character under a bracket with it.
 * @param {{characters: Map<number, CharacterPart>}} axis @param {Map<number, HTMLElement>} tokens @returns {HTMLElement[]} */
export function bracketed({characters}, tokens) {
  /** @type {HTMLElement[]} */
  const nodes = [];
  let open = -1;
  for (const [place, token] of tokens) {
    const part = characters.get(place);
    if (!part || part.text === "") nodes.push(token);
    else if (part.group === open) nodes[nodes.length - 1].lastElementChild?.before(token);
    else nodes.push(bracket(part, token));
    open = part && part.text !== "" ? part.group : -1;
  }
  return nodes;
}

/** @param {CharacterPart} part @param {HTMLElement} token */
function bracket({text, of}, token) {
  const [group, below] = [document.createElement("div"), document.createElement("bdi")];
  group.className = "av-character";
  group.style.setProperty("--av-bytes", String(of));
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", text);
  below.setAttribute("aria-hidden", "true");
  below.textContent = text;
  group.append(token, below);
  return group;
}
