"""Define the look of Plotly figures and the explorer's style sheet.

Query, key and value follow Okabe & Ito 2008 ("Color Universal Design"), safe for colour-blind readers, lightened on
dark. Weights run from the background to a deep hue in equal steps of OKLab lightness (Ottosson 2020), as do
differences around 0: grey for minus, purple for plus. Hues are most saturated between, since a straight OKLab path is
muddy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

ThemeName = Literal["light", "dark"]

# The relative luminance on which black and white are read equally well: (L + 0.05)² = 1.05 × 0.05.
_EITHER = (1.05 * 0.05) ** 0.5 - 0.05

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', 'Noto Sans', sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono', monospace"


@dataclass(frozen=True)
class Palette:
    """One theme's colours, as #rrggbb.

    Attributes:
        weights: from 0 to deepest, in equal steps.
        differences: minus over 0, the background, to plus, grey to purple, in equal steps.
        roles: in the order of `analysis.roles.ROLES`, for the largest worst distance under protanopia, deuteranopia and
            tritanopia. Non-jobs are neutral. "above" shares "induction"'s hue: pictures have one, texts the other.
    """

    background: str
    surface: str
    ink: str
    muted: str
    line: str
    accent: str
    query: str
    key: str
    value: str
    blocked: str
    good: str
    bad: str
    weights: tuple[str, ...]
    differences: tuple[str, ...]
    roles: tuple[str, ...]

    @property
    def less(self) -> str:
        """Return the colour of the lowest difference."""
        return self.differences[0]

    @property
    def more(self) -> str:
        """Return the colour of the highest difference."""
        return self.differences[-1]

    @property
    def increases(self) -> tuple[str, ...]:
        """Return the colours from no difference to the highest."""
        return self.differences[len(self.differences) // 2 :]


def _stops(colours: str) -> tuple[str, ...]:
    return tuple(f"#{colour}" for colour in colours.split())


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
    blocked="#A7AEBA",
    good="#1B7F4B",
    bad="#B3261E",
    weights=_stops("FFFFFF EAE4FA D4CAF5 BFAFEE AA95E8 957AE1 825ED9 6D48C3 5932AD 461797 34007A"),
    differences=_stops("4F535A 6F727A 90949B B2B6BE D7DAE1 FFFFFF DDD4F7 BBAAED 997FE2 7A55D0 5932AD"),
    roles=_stops("2B37C9 2585C8 8F005F 12B859 5A5100 8F005F A87A06 929AA8 857565 C3C8D1"),
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
    blocked="#5A6373",
    good="#4CC38A",
    bad="#FF8A80",
    weights=_stops("0E1117 24144F 3D0089 5501B3 6D21D2 8639F1 9D5CFF B181FF C6A3FF DAC3FE EEE2FF"),
    differences=_stops("B4B8C0 8F929A 6B6F76 494D54 2A2D34 0E1117 330872 5A07B9 8134EB A56BFF C6A3FF"),
    roles=_stops("3F8BFE 6CC4FA EA2A3C 95FFEE E1F24A EA2A3C FA8F12 6F7888 B5A594 3C4350"),
)

_PALETTES: Mapping[ThemeName, Palette] = {"light": LIGHT, "dark": DARK}


def palette(theme: ThemeName) -> Palette:
    """Return the theme's colours."""
    return _PALETTES[theme]


def ramp(low: str, high: str, steps: int = 9) -> tuple[str, ...]:
    """Return colours in equal OKLab steps, ends included."""
    start, end = _oklab(low), _oklab(high)
    return tuple(
        _hex(tuple(a + (b - a) * step / (steps - 1) for a, b in zip(start, end, strict=True))) for step in range(steps)
    )


def diverging(low: str, middle: str, high: str, steps: int = 9) -> tuple[str, ...]:
    """Return colours from low over 0 to high, in equal OKLab steps per side."""
    return (*ramp(low, middle, steps), *ramp(middle, high, steps)[1:])


def colour_scale(stops: Sequence[str]) -> list[list[Any]]:
    """Add Plotly's places from 0 to 1 to colours."""
    return [[step / (len(stops) - 1), colour] for step, colour in enumerate(stops)]


def on_ramp(stops: Sequence[str], place: float) -> str:
    """Mix the colour at 0 to 1, as browsers, Plotly and the explorer's `data/scale.js` do."""
    at = min(max(place, 0.0), 1.0) * (len(stops) - 1)
    low, high = stops[math.floor(at)], stops[math.ceil(at)]
    mixed = (a + (b - a) * (at % 1) for a, b in zip(channels(low), channels(high), strict=True))
    return "#" + "".join(f"{round(one):02X}" for one in mixed)


def ink_on(colour: str) -> str:
    """Choose black or white for 4.5 to 1 contrast at least (WCAG 2.2), as the explorer's `data/scale.js`."""
    red, green, blue = (_linear(channel / 255) for channel in channels(colour))
    return "#FFFFFF" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < _EITHER else "#000000"


def channels(colour: str) -> tuple[int, int, int]:
    """Return a colour's red, green and blue, from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _oklab(colour: str) -> tuple[float, float, float]:
    red, green, blue = (_linear(channel / 255) for channel in channels(colour))
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
