"""Every page can be run again without a browser, and shows the same."""

from pathlib import Path

import pytest

from attention_viz.ui.parts.menu import PAGES as MENU
from tests.ui.screens import Screen

PAGES = ["/" if file == "app.py" else f"/{Path(file).stem}" for file in MENU.values()]


@pytest.fixture(scope="module")
def screen() -> Screen:
    return Screen()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_a_second_time_and_keeps_its_address(screen: Screen, page: str) -> None:
    first = screen.open(f"{page}?model=scratch&text=the+cat+sat").address
    assert screen.run().address == first
    assert first["text"] == "the cat sat" and not screen.warnings


def test_a_layer_that_the_model_calls_otherwise_is_called_so_in_the_picker() -> None:
    screen = Screen().open("/?model=induction&text=a+b+a")
    assert screen.picker("Layer").options == ["0", "1"]
