"""Every kind of change is chosen in the picker and asked for in an address, and the list tells it."""

from dataclasses import replace

import numpy
import pytest

from attention_viz.edits.change import Drawing
from attention_viz.edits.changes import EDITS, describe, read_changes, write_changes
from attention_viz.scratch.model import Scratch
from attention_viz.ui.address.cells import to_code
from attention_viz.ui.parts.markdown import plain
from tests.ui.screens import Screen

TEXT = "the cat sat"
HEADS = f"/heads?model=scratch&text={TEXT.replace(' ', '+')}&layer=0&head=1"


# Those that a model of softmax attention is offered.
SOFTMAX = [name for name, kind in EDITS.items() if "softmax" in kind.fits]


@pytest.fixture(scope="module")
def screen() -> Screen:
    return Screen().open(HEADS)


def listed(screen: Screen) -> list[str]:
    """The changes that the page lists."""
    return [one.value for one in screen.app.markdown if one.value[:1].isdigit()]


def drawing() -> str:
    """One cell of a text of three words, as an address carries a pattern."""
    return to_code(numpy.eye(3, dtype=bool) & (numpy.arange(3) == 1))


@pytest.mark.parametrize("name", SOFTMAX)
def test_a_kind_of_change_is_chosen_added_and_listed(screen: Screen, name: str) -> None:
    run = f"&search=pattern&pattern={drawing()}" if isinstance(EDITS[name].asks, Drawing) else ""
    screen.back_to(HEADS + run).pick("Change", name).press("Add")
    ((change,), notices) = read_changes(screen.address["edits"])
    assert (change.what, change.layer, change.head) == (name, 0, 1) and not notices
    assert listed(screen) == [f"{plain('1. ' + describe(change, Scratch().trace(TEXT)))}"]


@pytest.mark.parametrize("name", SOFTMAX)
def test_a_kind_of_change_is_asked_for_in_an_address(screen: Screen, name: str) -> None:
    asked = EDITS[name].example.replace("4", "0").replace("5", "1").replace("3", "1")
    ((change,), _) = read_changes(asked)
    asked = write_changes([replace(change, layer=0, head=1)])
    screen.back_to(f"{HEADS}&edits={asked}")
    assert screen.address["edits"] == asked and not screen.warnings
    assert len(listed(screen)) == 1
    assert any("With this change, the output moves by" in one.value for one in screen.app.markdown)


def test_a_change_in_an_address_that_can_not_be_read_is_told_on_both_pages(screen: Screen) -> None:
    for page in (HEADS, HEADS.replace("/heads", "/compare") + "&what=edit"):
        screen.back_to(f"{page}&edits=zero@0.1;sharpen")
        assert screen.address["edits"] == "zero@0.1"
        (said,) = screen.warnings
        assert "“sharpen”" in said
