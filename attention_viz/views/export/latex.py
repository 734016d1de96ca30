"""Escape text for LaTeX."""

import unicodedata

__all__ = ["latex_text"]

# Some versions of Inkscape escape a percent sign and an ampersand themselves, so that neither may be in the text.
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "$": r"\textdollar{}",
    "&": r"\char38{}",
    "%": r"\char37{}",
    "#": r"\char35{}",
    "_": r"\textunderscore{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "·": r"\textperiodcentered{}",
    "…": r"\dots{}",
    "–": "--",
    "—": "---",
    "“": "``",
    "”": "''",
    "’": "'",
    "\u00a0": "~",
    "␣": r"\textvisiblespace{}",
    "‿": r"$\smile$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "−": r"$-$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "∞": r"$\infty$",
    "√": r"$\surd$",
    "Σ": r"$\Sigma$",
    "⟨": r"$\langle$",
    "⟩": r"$\rangle$",
}
# Latin letters, which every LaTeX of today reads.
_LATIN = 0x17F


def latex_text(text: str) -> str:
    """Return a text that LaTeX sets as it is: characters that pdfLaTeX doesn't have become ⟨U+…⟩."""
    return "".join(map(_one, text))


def _one(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if unicodedata.category(character) == "Cf":  # such as marks of a text's direction, which have no sign
        return ""
    number = ord(character)
    if number < 0x20 or 0x7F <= number < 0xA0:
        return " "
    if number <= 0x7E or (number <= _LATIN and character.isalpha()):
        return character
    kind, _, digits = unicodedata.decomposition(character).partition(" ")
    if kind in ("<sub>", "<super>"):
        return rf"\text{kind[1:-1]}script{{{_one(chr(int(digits.split()[0], 16)))}}}"
    return rf"$\langle$U+{number:04X}$\rangle$"
