"""How pages name what has a place and no word: patches of a picture and frames of a sound."""

import re

import pytest

from attention_viz.explorer.packet import read_packet
from tests.ui.screens import Screen

# Patches 15, 4 and 3, 5 of sixteen a row, after the class token.
_PAIR = "layer=5&head=1&query=245&key=54"
_BARE = re.compile(r"“\d+,\s?\d+”|· \d+,\d+")


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one page after the other."""
    return Screen()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (f"/compare?what=heads&{_PAIR}", "A patch at the lower left looks at a patch at the top"),
        (f"/heads?{_PAIR}", "Heads where patch 15, 4 (245)"),
        (f"/masks?mask=drawn&{_PAIR}", "patch 15, 4"),
    ],
)
def test_a_patch_is_called_by_its_place_on_every_page(screen: Screen, address: str, words: str) -> None:
    page, choices = address.split("?")
    screen.open(f"{page}?model=dinov2-small&{choices}")
    offered = [one for picker in screen.all("selectbox") for one in picker.options]
    claim = "".join(text for text, _ in screen.channel("compare-rows").get("phrase", ()))
    said = "\n".join([screen.words, *screen.written, *offered, claim])
    said = re.sub(r"</?[a-z][^>]*>", "", said)
    assert words in said
    assert not [one for one in said.splitlines() if _BARE.search(one)]


def test_why_calls_both_by_their_places(screen: Screen) -> None:
    screen.open(f"/why?model=dinov2-small&why=pair&{_PAIR}")
    (packed,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-why-board")]
    header, _ = read_packet(packed)
    assert header["more"] == "patch 15, 4 → patch 3, 5"
    assert header["queries"][245] == "patch 15, 4"
