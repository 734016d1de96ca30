import dataclasses
import itertools
import math
import re

import pytest

from attention_viz.views.style.theme import DARK, LIGHT, Palette, ink_on, on_ramp, palette, ramp

PALETTES = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


def linear(colour: str) -> list[float]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, "contrast ratio"."""
    light, dark = sorted(
        (sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (one, other)),
        reverse=True,
    )
    return (light + 0.05) / (dark + 0.05)


def oklab(red: float, green: float, blue: float) -> tuple[float, float, float]:
    """Ottosson 2020, from the matrices as published; of linear channels."""
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def lightness(colour: str) -> float:
    return oklab(*linear(colour))[0]


# How colours look to the colour-blind: Machado et al. 2009, at full strength, of linear channels.
SEEN_WITH = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen(colour: str, eyes: str) -> tuple[float, float, float]:
    """A colour as it looks to some eyes, in OKLab."""
    channels = (sum(w * c for w, c in zip(row, linear(colour), strict=True)) for row in SEEN_WITH[eyes])
    return oklab(*(min(1.0, max(0.0, one)) for one in channels))


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
    assert lightness("#FFFFFF") == pytest.approx(1, abs=1e-6) and lightness("#000000") == 0


@PALETTES
def test_every_colour_is_written_out_in_full(colours: Palette) -> None:
    for name, given in dataclasses.asdict(colours).items():
        for colour in [given] if isinstance(given, str) else given:
            assert re.fullmatch("#[0-9A-F]{6}", colour), name


@PALETTES
@pytest.mark.parametrize("on", ["background", "surface"])
@pytest.mark.parametrize("name", ["ink", "muted", "accent", "good", "bad"])
def test_text_can_be_read(colours: Palette, on: str, name: str) -> None:
    assert contrast(getattr(colours, name), getattr(colours, on)) >= 4.5


@PALETTES
@pytest.mark.parametrize("on", ["background", "surface"])
@pytest.mark.parametrize("name", ["query", "key", "value", "less", "more"])
def test_marks_can_be_seen(colours: Palette, on: str, name: str) -> None:
    assert contrast(getattr(colours, name), getattr(colours, on)) >= 3
    assert contrast(colours.weights[-1], getattr(colours, on)) >= 12


@PALETTES
def test_no_weight_and_no_difference_disappear_into_the_page(colours: Palette) -> None:
    assert colours.weights[0] == colours.increases[0] == colours.background
    assert len(colours.differences) == 2 * len(colours.increases) - 1


@PALETTES
@pytest.mark.parametrize("eyes", SEEN_WITH)
@pytest.mark.parametrize(("one", "other"), [("query", "key"), ("query", "value"), ("key", "value")])
def test_query_key_and_value_are_told_apart_by_the_colour_blind_too(
    colours: Palette, eyes: str, one: str, other: str
) -> None:
    # Four times what can just be told apart side by side, about 0.02.
    assert math.dist(seen(getattr(colours, one), eyes), seen(getattr(colours, other), eyes)) > 0.08


def chroma(colour: str) -> float:
    return math.hypot(*oklab(*linear(colour))[1:])


RAMPS = pytest.mark.parametrize(
    "stops",
    [
        stops
        for colours in (LIGHT, DARK)
        for stops in (colours.weights, colours.increases, tuple(reversed(colours.differences))[5:])
    ],
    ids=[f"{theme} {what}" for theme in ("light", "dark") for what in ("weights", "more", "less")],
)


@RAMPS
def test_each_ramp_runs_in_equal_steps_of_lightness(stops: tuple[str, ...]) -> None:
    measured = [lightness(colour) for colour in stops]
    even = (measured[-1] - measured[0]) / (len(stops) - 1)
    for before, after in itertools.pairwise(measured):
        # Saturated colours are not hit more closely than this in three channels of 256 steps each.
        assert after - before == pytest.approx(even, abs=0.016)
    steps = ramp(stops[0], stops[-1], 9)
    assert (steps[0], steps[-1]) == (stops[0], stops[-1])


HUES = pytest.mark.parametrize("stops", [stops for one in (LIGHT, DARK) for stops in (one.weights, one.increases)])


@HUES
def test_each_ramp_of_a_hue_stays_saturated_between_its_ends(stops: tuple[str, ...]) -> None:
    straight = ramp(stops[0], stops[-1], len(stops))
    middle = len(stops) // 2
    # Where numbers are most: between a fifth and four fifths.
    assert chroma(stops[middle]) > chroma(straight[middle])
    assert all(chroma(one) > 0.028 for one in stops[1:])


def test_weights_on_a_dark_page_are_as_saturated_as_on_a_light_one_from_a_tenth_on() -> None:
    assert all(chroma(one) >= 0.1 for one in DARK.weights[1:8])
    assert max(map(chroma, DARK.weights)) > max(map(chroma, LIGHT.weights)) > 0.18


@PALETTES
@pytest.mark.parametrize("name", ["weights", "differences"])
def test_a_number_can_be_read_on_every_cell_of_a_ramp(colours: Palette, name: str) -> None:
    stops = getattr(colours, name)
    for place in range(1001):
        colour = on_ramp(stops, place / 1000)
        assert contrast(colour, ink_on(colour)) >= 4.5, (place / 1000, colour)


def test_black_or_white_can_be_read_on_any_colour() -> None:
    for red, green, blue in itertools.product(range(0, 256, 15), repeat=3):
        colour = f"#{red:02X}{green:02X}{blue:02X}"
        ink = ink_on(colour)
        other = {"#000000": "#FFFFFF", "#FFFFFF": "#000000"}[ink]
        assert contrast(colour, ink) >= max(4.5, contrast(colour, other))


def test_a_place_between_two_colours_is_mixed_of_both_and_beyond_the_ends_it_stays_at_them() -> None:
    stops = ("#FFFFFF", "#808080", "#0000FF")
    assert [on_ramp(stops, place) for place in (-1, 0, 0.25, 0.5, 1, 2)] == [
        "#FFFFFF",
        "#FFFFFF",
        "#C0C0C0",
        "#808080",
        "#0000FF",
        "#0000FF",
    ]


@PALETTES
def test_minus_is_grey_and_plus_is_the_hue_of_weights(colours: Palette) -> None:
    assert all(chroma(one) < 0.02 for one in colours.differences[:5])
    assert all(chroma(one) > 0.028 for one in colours.increases[1:])
    nearest = [
        min(math.dist(oklab(*linear(one)), oklab(*linear(on_ramp(colours.weights, at / 100)))) for at in range(101))
        for one in colours.increases
    ]
    assert max(nearest) < 0.02


@PALETTES
def test_a_difference_has_two_arms_of_nearly_equal_strength(colours: Palette) -> None:
    middle = lightness(colours.increases[0])
    arms = [abs(lightness(one) - middle) for one in (colours.less, colours.more)]
    assert max(arms) / min(arms) < 1.35


def test_the_themes_go_by_their_names() -> None:
    assert palette("light") is LIGHT and palette("dark") is DARK
