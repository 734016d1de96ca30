"""Two sentences are compared that belong together: what a model's example is compared with comes with the model."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from attention_viz.sources import CATALOGUE
from attention_viz.ui.address import own_contrast, own_example
from attention_viz.ui.pages.compare.choice import exchanged
from tests.ui.screens import Screen

SMOLLM2 = "SmolLM2-135M-Instruct"


def script() -> None:
    """The model's picker, and what the page compares."""
    from attention_viz.ui import visit
    from attention_viz.ui.controls import pickers
    from attention_viz.ui.controls.model import pick_model
    from attention_viz.ui.controls.wording import text_box
    from attention_viz.ui.pages.compare.page import PAGE, choose_kind, other_text, show_pickers

    pickers.begin(*PAGE.groups)
    text_box("Sentence", "text")
    pick_model()
    choose_kind()
    other_text()
    show_pickers(visit.shared())


def opened(**address: str) -> AppTest:
    screen = AppTest.from_function(script, default_timeout=60)
    for name, value in address.items():
        screen.query_params[name] = value
    return screen.run()


def both(screen: AppTest) -> tuple[str | None, str | None]:
    assert not screen.exception
    return screen.text_area(key="text").value, screen.text_area(key="compare-other").value


def test_the_second_sentence_comes_with_the_model_until_another_is_typed() -> None:
    screen = opened()
    for model in ("all-MiniLM-L6-v2", SMOLLM2, "coreference", "scratch"):
        screen.selectbox(key="source").select(model).run()
        assert both(screen) == (own_example(model), own_contrast(model))
    screen.text_area(key="compare-other").input("the cat").run()
    screen.selectbox(key="source").select(SMOLLM2).run()
    assert both(screen) == (own_example(SMOLLM2), "the cat")


@pytest.mark.parametrize("other", ["the cat", CATALOGUE["lists"].contrast])
def test_what_a_link_says_holds(other: str) -> None:
    assert both(opened(model=SMOLLM2, text="a b", other=other)) == ("a b", other)
    assert both(opened(model=SMOLLM2)) == (own_example(SMOLLM2), own_contrast(SMOLLM2))


def test_a_sentence_of_ones_own_is_compared_with_its_own_words() -> None:
    screen = opened()
    screen.text_area(key="text").input("Yesterday Anna met Boris in Paris").run()
    assert both(screen)[1] == "Yesterday Boris met Anna in Paris"
    screen.text_area(key="text").input("the cat sees a dog").run()
    assert both(screen)[1] == "the dog sees a cat"
    screen.text_area(key="compare-other").input("my own").run()
    screen.text_area(key="text").input("a b").run()
    assert both(screen) == ("a b", "my own")
    assert both(opened(text="a b")) == ("a b", "b a")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The bank of the river was flooded", "The river of the bank was flooded"),
        ("It rained. Then Mary's dog saw John.", "It rained. Then John's dog saw Mary."),
        ("she and he", "and she he"),
        ("The cat sat because it was tired", "The tired sat because it was cat"),
        ("well, well", "well, well"),
        ("דג גדול", "גדול דג"),
        ("🙂 2 < 3 🙂\n", "🙂 3 < 2 🙂\n"),
        ("", ""),
        ("猫が好き", "猫が好き"),
        ("no " * 10_000, "no " * 10_000),
    ],
)
def test_two_words_change_places_and_nothing_else(text: str, other: str) -> None:
    assert exchanged(text) == other


def test_the_page_knows_at_once_which_second_sentence_it_has_run_from() -> None:
    # Otherwise it would be pale, as of a text that nobody has run.
    screen = Screen().open("/compare?what=sentences&model=coreference")
    (told,) = [json.loads(one.proto.json) for one in screen.all("bidi_component") if "texts-follower" in one.proto.id]
    assert told["texts"]["compare-other"] == screen.picker("Second sentence").value == own_contrast("coreference")


def test_every_model_with_examples_has_a_sentence_to_compare_the_first_with() -> None:
    for entry in CATALOGUE.values():
        assert bool(entry.contrast) == bool(entry.examples)
        assert entry.contrast != (entry.examples or ("",))[0] or not entry.examples
