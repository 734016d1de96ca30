"""Write tokens as plain text, whatever their characters."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from attention_viz.trace.spelling import number_of, set_apart, visible, xml_text

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens

_LONGEST_LABEL, _LONGEST_READ = 18, 300
# A word that `set_apart` isolated: its signs before and after it are not seen, and belong together.
_ISOLATE, _MARKS = "\u2068", 4
_ISOLATED = re.compile("([^\u2068]*\u2068)(.*)(\u2069.*)", re.DOTALL)
_SIGN = re.compile(r"&(?:amp|lt|gt|#34|#39);|.", re.DOTALL)


def shortened(label: str, longest: int = _LONGEST_LABEL) -> str:
    """Shorten a label for an axis; a sign that `escaped` spelled counts as one and stays whole."""
    if len(label) <= longest:
        return label
    if _ISOLATE in label[:_MARKS] and (isolated := _ISOLATED.fullmatch(label)) is not None:
        before, text, after = isolated.groups()
        return f"{before}{shortened(text, longest - len(before))}{after}"
    # One sign more than there is room for says that it doesn't fit; a label may have millions.
    signs = [found[0] for found in islice(_SIGN.finditer(label), longest + 1)]
    if len(signs) <= longest:
        return label
    number = number_of(label)
    return f"{''.join(signs[: max(1, longest - 1 - len(number))])}…{number}"


def escaped(text: str) -> str:
    """Escape text for SVG and Plotly, which reads some HTML, and isolate right-to-left words."""
    return (
        xml_text(set_apart(text))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&#34;")
        .replace("'", "&#39;")
    )


def readable(labels: Sequence[str]) -> list[str]:
    """Write `written` tokens for figures, cut, without markup or invisible characters."""
    return [escaped(one) for one in _cut(labels)]


def token_names(tokens: "Tokens") -> list[str]:
    """Write an axis's tokens for figures, repeated ones numbered: "the₂"."""
    return readable(tokens.numbered)


def drawn_names(tokens: "Tokens") -> list[str]:
    """Write an axis's tokens for a canvas, which has no markup: repeated ones numbered, patches and frames by place."""
    names = _cut(tokens.numbered)
    return [tokens.placed_at(at) or set_apart(name) for at, name in enumerate(names)]


def _cut(labels: Sequence[str]) -> list[str]:
    return [_seen(label[:_LONGEST_READ]) + "…" * (len(label) > _LONGEST_READ) for label in labels]


def _seen(label: str) -> str:
    return " ".join(map(visible, label.split(" "))) if all(label.split(" ")) else visible(label)


def share_text(share: float) -> str:
    """Write a share or a change in percent, such as "48 %", "1.2 %" and "<0.1 %"."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{share:.1%}".replace("%", " %") if share < 0.0995 else f"{share:.0%}".replace("%", " %")


def with_minus(number: str) -> str:
    """Use a true minus sign on pages, not files."""
    return number.replace("-", "−")


def spread(count: int, most: int) -> list[int]:
    """Return at most that many evenly spaced positions from the first."""
    step = max(1, -(-count // max(1, most)))
    return list(range(0, count, step))


def one_line(text: str, longest: int) -> str:
    """Shorten foreign text to one line without direction controls."""
    # What is cut off isn't gone through: so many words, and the spaces between them, are more than fit.
    start = " ".join(text.split(maxsplit=2 * longest))[: 4 * longest]
    return shortened(visible(start).replace("␣", " "), longest)
