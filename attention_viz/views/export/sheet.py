"""A picture's size on paper and its surroundings."""

import re
from dataclasses import dataclass

from attention_viz.errors import AttentionVizError

# Pixels of CSS, of which there are 96 in an inch whatever the screen.
_INCH = 96.0
_UNITS = {"mm": _INCH / 25.4, "cm": _INCH / 2.54, "in": _INCH, "pt": _INCH / 72, "px": 1.0}
_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(mm|cm|in|pt|px)\s*")
# From a postage stamp to a poster, in pixels; letters in points.
_LEAST, _MOST = 60.0, 6000.0
_LETTERS = (3.0, 48.0)
# Of pictures with a width and no size for their letters, in points: of half a column, a column, a page.
_USUAL, _NARROW, _NARROW_BELOW = 8.0, 7.0, 400.0
# How wide a letter of the usual face is, beside its size.
_LETTER = 0.56


@dataclass(frozen=True)
class Sheet:
    """A figure's settings on paper: pixels, 96 an inch, letters in points; its own title if True."""

    width: float | None = None
    height: float | None = None
    title: str | bool | None = True
    footer: bool = True
    numbers: bool = True
    font_size: float | None = None
    latex: bool = False

    @classmethod
    def asked(
        cls,
        width: str | float | None = None,
        height: str | float | None = None,
        title: str | bool | None = True,
        footer: bool = True,
        numbers: bool = True,
        font_size: float | None = None,
    ) -> "Sheet":
        """Parse settings with lengths like "170mm", "6.7in" or pixels."""
        if font_size is not None and not _LETTERS[0] <= font_size <= _LETTERS[1]:
            raise AttentionVizError(f"font_size must be 3 to 48 points; got {font_size:g}")
        return cls(in_pixels(width, "width"), in_pixels(height, "height"), title or None, footer, numbers, font_size)

    @property
    def letters(self) -> float:
        """Return the size of the usual letters in pixels."""
        if self.font_size is not None:
            return self.font_size * _UNITS["pt"]
        if self.width is None:
            return 12.0
        return (_NARROW if self.width < _NARROW_BELOW else _USUAL) * _UNITS["pt"]


AS_DRAWN = Sheet()


def in_pixels(length: str | float | None, what: str) -> float | None:
    """Convert a length, pixels or a text with its unit, to CSS pixels."""
    if length is None:
        return None
    found = _LENGTH.fullmatch(length) if isinstance(length, str) else None
    if isinstance(length, str) and found is None:
        raise AttentionVizError(f"{what} must be a number and {', '.join(_UNITS)}, such as 170mm; got {length!r}")
    pixels = float(found[1]) * _UNITS[found[2]] if found else float(length)
    if not _LEAST <= pixels <= _MOST:
        raise AttentionVizError(f"{what} must be 16mm to 1587mm; got {length}")
    return pixels


def in_millimetres(pixels: float) -> str:
    """Write a length in pixels as millimetres, to a thousandth."""
    return f"{pixels / _UNITS['mm']:.3f}".rstrip("0").rstrip(".")


def px(pixels: float) -> str:
    """Write a length in pixels, to a hundredth."""
    return f"{pixels:.2f}".rstrip("0").rstrip(".")


def wrapped(text: str, width: float, letters: float) -> list[str]:
    """Wrap a text to a width in pixels, cutting overlong words."""
    import textwrap

    return textwrap.wrap(text, max(4, int(width / (_LETTER * letters)))) or [""]
