"""How tokens are written in pictures and on pages: text stays text, whatever characters it is made of."""

import unicodedata
from collections.abc import Sequence

__all__ = [
    "escaped",
    "listed",
    "one_line",
    "readable",
    "shortened",
    "shown",
    "spelled",
    "spread",
    "with_minus",
]

_LONGEST_LABEL = 18


def shown(label: str) -> str:
    """A token's label with what can't be seen made visible: control characters as their pictures, spaces as ␣."""
    return "".join(_visible(character) for character in label) or "∅"


def spelled(label: str) -> str:
    """A token's label as the explorer writes it: a light mark for a space before it, another where a word goes on."""
    if len(label) > 1 and label[0] in "Ġ▁":
        return f"·{shown(label[1:])}"
    return f"‿{shown(label[2:])}" if label.startswith("##") and len(label) > 2 else shown(label)


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence: "one", "one and two", "one, two and three"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def shortened(label: str, longest: int = _LONGEST_LABEL) -> str:
    """A label that fits beside an axis; the full one belongs into the hover."""
    return label if len(label) <= longest else label[: longest - 1] + "…"


def escaped(text: str) -> str:
    """Text that neither SVG nor Plotly, which reads a little HTML in its labels, can take for markup."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("'", "&#39;")
    )


def readable(labels: Sequence[str]) -> list[str]:
    """Tokens' labels as pictures write them: what can't be seen made visible, and nothing taken for markup."""
    return [escaped(shown(label)) for label in labels]


def with_minus(number: str) -> str:
    """A written number with the minus sign, as wide as a plus, where Python writes a hyphen: for pages, not files."""
    return number.replace("-", "−")


def spread(count: int, most: int) -> list[int]:
    """At most that many positions out of `count`, evenly spaced from the first, for labels that would touch."""
    step = max(1, -(-count // max(1, most)))
    return list(range(0, count, step))


def one_line(text: str, longest: int) -> str:
    """A text of somebody's as part of a sentence: in one line, not too long, and without signs that turn it around."""
    return shortened(shown(" ".join(text.split())).replace("␣", " "), longest)


def _visible(character: str) -> str:
    if character == " ":
        return "␣"
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    # Joiners hold emoji and Indic letters together: they stay. Every other format or control character would be
    # invisible, or (direction overrides) move the text around it.
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200c\u200d":
        return f"⟨{code:04X}⟩"
    return character
