"""Changes made on a page: what it shows is what the library gives for the same edits, step by step and back again."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pandas
import pytest
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.edits.effects import likelier, moved_output, moved_weight
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from tests.conftest import OpenPage

Idle = Callable[[Page], None]
TEXT = "moon cheese frog ring moon cheese"
INDUCTION = "/heads?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query, keep_blank_values=True).items()}


def numbers(screen: Page, key: str) -> list[str]:
    return screen.locator(f".st-key-{key} .heatmap-label text").all_text_contents()


def moved(before: Trace, after: Trace) -> float:
    return float(moved_output(before, after).mean())


def test_two_changes_at_once_are_what_the_model_does_with_both(page: OpenPage, idle: Idle) -> None:
    """And a click adds one, a click removes one, "Undo" takes the last step back, and each is in the address."""
    model = av.load("induction")
    before = model.trace(TEXT)
    both = model.trace(TEXT, edits=[av.Block(4, 1, 0), av.Ablate(1, 1)])
    blocked = model.trace(TEXT, edits=[av.Block(4, 1, 0)])
    screen = page(INDUCTION + "&edits=block:4>1@0;nonsense@1")
    expect(screen.get_by_text("the change “nonsense@1”, left out here")).to_be_visible()
    expect(screen.get_by_text(f"the output moves by {moved(before, blocked):.2%} of its length")).to_be_visible()
    screen.get_by_role("button", name="Add", exact=True).click()
    expect(screen.get_by_text("2. Layer 1, head 1 says nothing (its output is 0)")).to_be_visible()
    idle(screen)
    expect(screen.get_by_text(f"the output moves by {moved(before, both):.2%} of its length")).to_be_visible()
    expect(screen.get_by_text("nonsense")).to_have_count(0)
    assert parameters(screen)["edits"] == "block:4>1@0;zero@1.1"
    shares = moved_weight(before, both).flatten().tolist()
    assert numbers(screen, "what-if-heads") == [f"{share:.2f}" for share in shares]
    effects = [moved(before, model.trace(TEXT, edits=[av.Ablate(1, head)])) for head in range(4)]
    assert numbers(screen, "what-if-effects") == [f"{share:.1%}" for share in effects]
    assert max(effects) == effects[1]
    for _, old, new in likelier(before, both, len(before.output) - 1):
        expect(screen.get_by_role("row", name=re.compile(rf"{old:.3f} {new:.3f}$")).first).to_be_visible()
    screen.locator(".st-key-export-what-if-outputs button").click()
    with screen.expect_download() as download:
        screen.get_by_test_id("stPopoverBody").get_by_role("button", name="Table (CSV)").click()
    handed_out = pandas.read_csv(download.value.path())
    assert handed_out["moved"].tolist() == pytest.approx(moved_output(before, both).tolist(), rel=1e-5)
    screen.keyboard.press("Escape")
    screen.get_by_role("button", name="Remove", exact=True).first.click()
    expect(screen.get_by_text("1. Layer 1, head 1 says nothing")).to_be_visible()
    idle(screen)
    assert parameters(screen)["edits"] == "zero@1.1"
    screen.get_by_role("button", name="Undo", exact=True).click()
    expect(screen.get_by_text("2. Layer 1, head 1 says nothing")).to_be_visible()
    idle(screen)
    assert parameters(screen)["edits"] == "block:4>1@0;zero@1.1"
    screen.get_by_role("button", name="Start over").click()
    expect(screen.get_by_text("Nothing is changed yet")).to_be_visible()
    idle(screen)
    assert "edits" not in parameters(screen)


def test_all_heads_are_tried_in_turn_when_asked(page: OpenPage, idle: Idle) -> None:
    """And what changes the chosen head is shown as a difference; what doesn't fit the text is said, and left out."""
    model = av.load("induction")
    before = model.trace(TEXT)
    screen = page(INDUCTION + "&edits=temp:0.5@1.1;block:1>70")
    expect(screen.get_by_text("left out here: this text has positions 0 to 6")).to_be_visible()
    cooled = model.trace(TEXT, edits=[av.Temperature(0.5, 1, 1)])
    expect(
        screen.get_by_text(f"The chosen head: {moved_weight(before, cooled)[1, 1]:.1%} of its weight")
    ).to_be_visible()
    screen.get_by_role("button", name="Try all 8").click()
    expect(screen.get_by_text("of the 8 heads tried, in layers 0 to 1")).to_be_visible()
    idle(screen)
    effects = [
        moved(before, model.trace(TEXT, edits=[av.Temperature(0.5, layer, head)]))
        for layer in range(2)
        for head in range(4)
    ]
    assert numbers(screen, "what-if-effects") == [f"{share:.1%}" for share in effects]
    expect(screen.get_by_role("button", name="Try all")).to_have_count(0)


def test_our_own_module_takes_changes_too(page: OpenPage) -> None:
    screen = page("/heads?model=scratch&text=a+small+boat&head=1&edits=zero@0.1")
    before = av.scratch("a small boat")
    expect(screen.get_by_text("1. Layer 0, head 1 says nothing")).to_be_visible()
    after = Scratch().trace("a small boat", edits=[av.Ablate(0, 1)])
    expect(screen.get_by_text(f"the output moves by {moved(before, after):.2%} of its length")).to_be_visible()
