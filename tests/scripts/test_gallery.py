"""The gallery shows every picture there is, as it is called and described in the code."""

import re

import pytest

import attention_viz as av
from attention_viz.views import VIEWS
from scripts import gallery

# More than that, and a page of so many pictures is slow to open.
_LARGEST = 150_000


def test_every_picture_stands_in_the_gallery_in_order_and_no_other() -> None:
    assert list(gallery.PICTURES) == list(VIEWS)
    assert {path.stem for path in gallery.FOLDER.glob("*")} == set(VIEWS)
    assert re.findall(r"^## (\w+)$", gallery.PAGE.read_text("utf-8"), re.MULTILINE) == list(VIEWS)


def test_the_page_is_what_the_script_writes() -> None:
    assert gallery.PAGE.read_text("utf-8") == gallery.page()


@pytest.mark.parametrize("name", VIEWS)
def test_each_is_called_by_its_own_name_and_drawn_with_text(name: str) -> None:
    assert gallery.code_of(name).startswith(f"av.views.{name}(")
    drawn = (gallery.FOLDER / f"{name}.svg").read_bytes()
    assert drawn.startswith(b"<svg") and drawn.endswith(b"</svg>\n")
    assert b"<text" in drawn
    assert b"http" not in re.sub(rb'xmlns(?::\w+)?="[^"]*"', b"", drawn), "it would fetch something"
    assert len(drawn) < _LARGEST


def test_places_are_shortened_and_numbers_that_are_read_are_not() -> None:
    drawn = b'<svg style=""><path d="M1.23456,2"/><text style="font-family: A; x: 1" x="3.14159">0.123456</text></svg>'
    told = gallery.shortened(drawn)
    assert b'd="M1.23,2"' in told and b'x="3.14"' in told and b">0.123456<" in told
    assert told.startswith(b'<svg style="font-family: A;"><style>')


@pytest.mark.parametrize("name", ["roles", "products", "shares", "paths", "steps"])
def test_a_picture_of_our_own_module_can_be_made_as_it_says(name: str) -> None:
    from types import SimpleNamespace

    figure = gallery.PICTURES[name](SimpleNamespace(sat=av.scratch("The cat sat on mat", d_model=8, heads=2, seed=0)))
    assert figure.data or figure.layout.shapes
