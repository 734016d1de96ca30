"""Changes made on a page: what it shows is what the library gives for the same edits, step by step and back again."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pandas
import pytest
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.edits.effects import likelier, moved_output, moved_weight
from attention_viz.scratch.model import Scratch
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.ui.pages.heads import what_if
from tests.conftest import OpenPage
from tests.ui.screens import Screen

Idle = Callable[[Page], None]
TEXT = "moon cheese frog ring moon cheese"


@pytest.fixture(autouse=True)
def in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scroll to everything at once."""
    monkeypatch.setattr(what_if, "in_sight", lambda *_: True)


INDUCTION = "/heads?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"


@pytest.fixture
def screen() -> Screen:
    """A visitor who hasn't been here before."""
    return Screen()


def moved(before: Trace, after: Trace) -> float:
    return float(moved_output(before, after).mean())


def effects(screen: Screen) -> list[float]:
    """The numbers of the heads that were tried, as the page draws them."""
    found = screen.matrix("what-if-effects")
    return found[found == found].tolist()


def test_two_changes_at_once_are_what_the_model_does_with_both(screen: Screen) -> None:
    """And a button adds one, one removes one, "Undo" takes the last step back, and each is in the address."""
    model = av.load("induction")
    before = model.trace(TEXT)
    both = model.trace(TEXT, edits=[av.Block(4, 1, 0), av.Ablate(1, 1)])
    blocked = model.trace(TEXT, edits=[av.Block(4, 1, 0)])
    screen.open(INDUCTION + "&edits=block:4>1@0;nonsense@1")
    assert "an unknown change, “nonsense@1”, which is left out" in screen.words
    assert f"the output moves by {moved(before, blocked):.2%} of its length" in screen.words
    screen.press("Add")
    assert "2. Layer 1, head 1 is zero-ablated: its output is 0" in screen.words
    assert f"the output moves by {moved(before, both):.2%} of its length" in screen.words
    assert "nonsense" not in screen.words
    assert screen.address["edits"] == "block:4>1@0;zero@1.1"
    assert screen.matrix("what-if-heads") == pytest.approx(moved_weight(before, both).numpy(), abs=1e-6)
    alone = [moved(before, model.trace(TEXT, edits=[av.Ablate(1, head)])) for head in range(4)]
    assert effects(screen) == pytest.approx(alone, abs=1e-6)
    assert max(alone) == alone[1]
    for _, old, new in likelier(before, both, len(before.output) - 1):
        assert f"| {weight_text(old)} | {weight_text(new)} |" in screen.words
    screen.press("Remove")
    assert "1. Layer 1, head 1 is zero-ablated" in screen.words
    assert screen.address["edits"] == "zero@1.1"
    screen.press("Undo")
    assert "2. Layer 1, head 1 is zero-ablated" in screen.words
    assert screen.address["edits"] == "block:4>1@0;zero@1.1"
    screen.press("Start over")
    assert "Nothing is changed yet" in screen.words
    assert "edits" not in screen.address


def test_a_table_of_what_changed_is_taken_away_and_undo_brings_back(open_page: OpenPage, idle: Idle) -> None:
    model = av.load("induction")
    before, after = model.trace(TEXT), model.trace(TEXT, edits=[av.Ablate(1, 1)])
    page = open_page(INDUCTION + "&edits=zero@1.1")
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.locator(".st-key-download-what-if-outputs-csv button").click()
    handed_out = pandas.read_csv(download.value.path())
    with page.expect_download() as weights:
        page.locator(".st-key-download-heads-weights-csv button").click()
    head = parse_qs(urlsplit(page.url).query)
    own = before.table(int(head["layer"][0]), int(head["head"][0]))
    assert pandas.read_csv(weights.value.path())["weight"].tolist() == pytest.approx(own["weight"].tolist(), rel=1e-4)
    assert handed_out["moved"].tolist() == pytest.approx(moved_output(before, after).tolist(), rel=1e-5)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove", exact=True).first.click()
    expect(page.get_by_text("Nothing is changed yet")).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_text("1. Layer 1, head 1 is zero-ablated")).to_be_visible()
    idle(page)
    assert parse_qs(urlsplit(page.url).query)["edits"] == ["zero@1.1"]


def test_all_heads_are_tried_in_turn_when_asked(screen: Screen) -> None:
    """And what changes the chosen head is shown as a difference; what doesn't fit the text is said, and left out."""
    model = av.load("induction")
    before = model.trace(TEXT)
    screen.open(INDUCTION + "&edits=temp:0.5@1.1;block:1>70")
    assert "left out here: this text has positions 0 to 6" in screen.words
    cooled = model.trace(TEXT, edits=[av.Temperature(0.5, 1, 1)])
    assert f"The chosen head: {moved_weight(before, cooled)[1, 1]:.1%} of its weight" in screen.words
    screen.press("Test all heads")
    assert "of the 8 heads tested, in layers 0 to 1" in screen.words
    tried = [
        moved(before, model.trace(TEXT, edits=[av.Temperature(0.5, layer, head)]))
        for layer in range(2)
        for head in range(4)
    ]
    assert effects(screen) == pytest.approx(tried, abs=1e-6)
    assert not [one.label for one in screen.all("button") if one.label == "Test all heads"]


def test_our_own_module_takes_changes_too(screen: Screen) -> None:
    screen.open("/heads?model=scratch&text=a+small+boat&head=1&edits=zero@0.1")
    before = av.scratch("a small boat")
    assert "1. Layer 0, head 1 is zero-ablated" in screen.words
    after = Scratch().trace("a small boat", edits=[av.Ablate(0, 1)])
    assert f"the output moves by {moved(before, after):.2%} of its length" in screen.words
