"""The look, in one place: Plotly figures and the explorer's style sheet read the same values.

Query, key and value are from Okabe & Ito 2008 ("Color Universal Design"), safe for colour-blind readers, lightened on
dark. Weights run from the page's background to one deep hue in equal steps of OKLab lightness (Ottosson 2020), so that
0 disappears and 1 stands out on either page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["DARK", "LIGHT", "MONOSPACE", "SANS", "Palette", "ThemeName", "colour_scale", "diverging", "palette", "ramp"]

ThemeName = Literal["light", "dark"]

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', 'Noto Sans', sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono', monospace"


@dataclass(frozen=True)
class Palette:
    """The colours of one theme, as #rrggbb."""

    background: str
    surface: str
    ink: str
    muted: str
    line: str
    accent: str
    query: str
    key: str
    value: str
    weight_low: str
    weight_high: str
    difference_low: str
    difference_middle: str
    difference_high: str
    blocked: str
    good: str
    bad: str


LIGHT = Palette(
    background="#FFFFFF",
    surface="#F6F7F9",
    ink="#1A1D23",
    muted="#5B6270",
    line="#D9DDE3",
    accent="#6A3FB5",
    query="#D55E00",
    key="#0072B2",
    value="#009E73",
    weight_low="#FFFFFF",
    weight_high="#3A0F7A",
    difference_low="#0072B2",
    difference_middle="#FFFFFF",
    difference_high="#D55E00",
    blocked="#A7AEBA",
    good="#1B7F4B",
    bad="#B3261E",
)

DARK = Palette(
    background="#0E1117",
    surface="#171B23",
    ink="#E8EAEE",
    muted="#9AA3B2",
    line="#2B313C",
    accent="#B794F6",
    query="#FF8A3D",
    key="#56B4E9",
    value="#6EE7B7",
    weight_low="#0E1117",
    weight_high="#E4D4FF",
    difference_low="#56B4E9",
    difference_middle="#0E1117",
    difference_high="#FF8A3D",
    blocked="#5A6373",
    good="#4CC38A",
    bad="#FF8A80",
)

_PALETTES: Mapping[ThemeName, Palette] = {"light": LIGHT, "dark": DARK}


def palette(theme: ThemeName) -> Palette:
    """The colours of the theme of that name."""
    return _PALETTES[theme]


def ramp(low: str, high: str, steps: int = 9) -> tuple[str, ...]:
    """Colours from low to high in equal steps of OKLab, both ends included."""
    start, end = _oklab(low), _oklab(high)
    return tuple(
        _hex(tuple(a + (b - a) * step / (steps - 1) for a, b in zip(start, end, strict=True))) for step in range(steps)
    )


def diverging(low: str, middle: str, high: str, steps: int = 9) -> tuple[str, ...]:
    """Colours from low over the middle, which stands for 0, to high, in equal steps of OKLab on either side."""
    return (*ramp(low, middle, steps), *ramp(middle, high, steps)[1:])


def colour_scale(stops: Sequence[str]) -> list[list[Any]]:
    """Colours in equal steps as Plotly wants them: each with its place, from 0 to 1."""
    return [[step / (len(stops) - 1), colour] for step, colour in enumerate(stops)]


def _oklab(colour: str) -> tuple[float, float, float]:
    red, green, blue = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _hex(lab: tuple[float, ...]) -> str:
    lightness, a, b = lab
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    channels = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(1.0, max(0.0, one)))):02X}" for one in channels)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def _gamma(channel: float) -> float:
    return 12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055
