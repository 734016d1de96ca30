"""Does it matter? is answered where it is asked, by a run without the head."""

import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.edits.effects import moved_output
from attention_viz.models.model import AttentionModel
from attention_viz.trace.tokens import Tokens
from attention_viz.ui.parts.matters import about_word, likelier_words, moved_words
from attention_viz.views.style.wording import share_text
from tests.conftest import OpenPage
from tests.shipped import shipped

Idle = Callable[[Page], None]
TEXT = "moon cheese frog ring moon"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("Mary", 0.923, 0.871), ("John", 0.01, 0.05)], "“Mary” 0.92 → 0.87"),
        ([("Mary", 0.923, 0.221), ("John", 0.01, 0.55)], "“Mary” 0.92 → 0.22; now “John” 0.55"),
        ([("Mary", 0.923, 0.924), ("John", 0.01, 0.01)], "“Mary” stays at 0.92"),
    ],
)
def test_a_likeliest_word_is_told_before_and_after(rows: list[tuple[str, float, float]], words: str) -> None:
    assert "".join(text for text, _ in likelier_words(rows)) == words


def test_a_word_that_the_model_would_replace_is_named_before_the_likeliest() -> None:
    tokens = Tokens.of_labels(["la", "clé", "la"])
    assert about_word(tokens, 1, "clé") == []
    assert "".join(text for text, _ in about_word(tokens, 1, "porte")) == "in place of “clé”, "
    assert "".join(text for text, _ in about_word(tokens, 2, "porte")) == "in place of “la₂”, "


def test_an_encoders_output_is_told_by_how_far_it_moves_and_where_most(minilm: AttentionModel) -> None:
    text = "The bank of the river was flooded"
    before, after = minilm.trace(text), minilm.trace(text, edits=[av.Ablate(0, 4)])
    moved = (after.output - before.output).norm(dim=-1) / before.output.norm(dim=-1)
    assert torch.allclose(moved, moved_output(before, after), atol=1e-5)
    most = int(moved[1:-1].argmax()) + 1
    said = "".join(text for text, _ in moved_words(before, after))
    label = before.query_tokens().labels[most]
    assert said.startswith(f"the output moves by {share_text(float(moved.mean()))}")
    assert said.endswith(f"“{label}”: {share_text(float(moved[most]))}")


def test_the_answer_comes_below_the_headline_and_nothing_moves(stay: OpenPage, idle: Idle) -> None:
    page = stay(f"/?model=induction&text={TEXT.replace(' ', '+')}&layer=1&head=1")
    button, answer = page.get_by_test_id("explorer-matters"), page.get_by_test_id("explorer-outcome")
    arcs = page.get_by_test_id("explorer-arcs")
    expect(button).to_be_visible()
    idle(page)
    before = arcs.bounding_box()
    button.click()
    model = shipped("induction")
    runs = model.trace(TEXT), model.trace(TEXT, edits=[av.Ablate(1, 1)])
    likely = [one.output[-1].softmax(dim=-1) for one in runs]
    best = int(likely[0].argmax())
    expect(answer).to_contain_text(f"Without 1·1: “{model.labels([best])[0].strip('Ġ')}” {float(likely[0][best]):.2f}")
    assert arcs.bounding_box() == before
    expect(page).not_to_have_url(re.compile("/heads"))
    # Of another head nobody has asked.
    idle(page)
    page.get_by_test_id("explorer-grid").locator("[data-head]").first.click()
    expect(button).to_be_visible()
    expect(answer).to_have_text("")
