"""Every page can be run again without a browser, and shows the same."""

import pytest

from tests.ui.screens import PAGES, Screen


@pytest.fixture(scope="module")
def screen() -> Screen:
    return Screen()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_runs_a_second_time_and_keeps_its_address(screen: Screen, path: str) -> None:
    first = screen.open(f"{path}?model=scratch&text=the+cat+sat").address
    assert screen.run().address == first
    assert first["text"] == "the cat sat" and not screen.warnings


def test_a_layer_that_the_model_calls_otherwise_is_called_so_in_the_picker() -> None:
    screen = Screen().open("/?model=induction&text=a+b+a")
    assert screen.picker("Layer").options == ["Layer 0", "Layer 1"]
