"""How tokens are written in pictures and on pages: text stays text, whatever characters it is made of."""

import re
from collections.abc import Sequence
from itertools import islice

from attention_viz.trace.spelling import set_apart, visible, xml_text

__all__ = [
    "escaped",
    "one_line",
    "readable",
    "shortened",
    "spread",
    "with_minus",
]

_LONGEST_LABEL, _LONGEST_READ = 18, 300
# A word that `set_apart` isolated: its signs before and after it are not seen, and belong together.
_ISOLATE, _MARKS = "\u2068", 4
_ISOLATED = re.compile("([^\u2068]*\u2068)(.*)(\u2069.*)", re.DOTALL)
_SIGN = re.compile(r"&(?:amp|lt|gt|#34|#39);|.", re.DOTALL)


def shortened(label: str, longest: int = _LONGEST_LABEL) -> str:
    """A label that fits beside an axis; the full one belongs into the hover.

    A sign that `escaped` wrote with several letters counts as the one that is seen, and is not cut through.
    """
    if len(label) <= longest:
        return label
    if _ISOLATE in label[:_MARKS] and (isolated := _ISOLATED.fullmatch(label)) is not None:
        before, text, after = isolated.groups()
        return f"{before}{shortened(text, longest - len(before))}{after}"
    # One sign more than there is room for says that it doesn't fit; a label may have millions.
    signs = [found[0] for found in islice(_SIGN.finditer(label), longest + 1)]
    return label if len(signs) <= longest else "".join(signs[: longest - 1]) + "…"


def escaped(text: str) -> str:
    """Return a text that SVG can hold, and that neither it nor Plotly, which reads a little HTML, takes for markup.

    A word from right to left is isolated: it doesn't turn the numbers beside it.
    """
    return (
        xml_text(set_apart(text))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&#34;")
        .replace("'", "&#39;")
    )


def readable(labels: Sequence[str]) -> list[str]:
    """Tokens as they are `written`, for pictures: nothing in them is taken for markup, and nothing is invisible.

    A space that is left in what is written stands between a number and its unit, as in "0.74 s", and is a space. What
    is longer than a hover has room for is cut: it is written once per cell.
    """
    return [escaped(_seen(label[:_LONGEST_READ]) + "…" * (len(label) > _LONGEST_READ)) for label in labels]


def _seen(label: str) -> str:
    return " ".join(map(visible, label.split(" "))) if all(label.split(" ")) else visible(label)


def with_minus(number: str) -> str:
    """A written number with the minus sign, as wide as a plus, where Python writes a hyphen: for pages, not files."""
    return number.replace("-", "−")


def spread(count: int, most: int) -> list[int]:
    """At most that many positions out of `count`, evenly spaced from the first, for labels that would touch."""
    step = max(1, -(-count // max(1, most)))
    return list(range(0, count, step))


def one_line(text: str, longest: int) -> str:
    """A text of somebody's as part of a sentence: in one line, not too long, and without signs that turn it around."""
    # What is cut off isn't gone through: so many words, and the spaces between them, are more than fit.
    start = " ".join(text.split(maxsplit=2 * longest))[: 4 * longest]
    return shortened(visible(start).replace("␣", " "), longest)
