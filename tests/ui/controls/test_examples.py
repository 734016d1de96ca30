"""A model comes with a text that shows what it is for, until somebody has typed another."""

import pytest
from streamlit.testing.v1 import AppTest

from attention_viz.sources import CATALOGUE
from attention_viz.ui.address import EXAMPLES, own_example

SMOLLM2, MARY = "SmolLM2-135M-Instruct", "When Mary and John went to the store, John gave a drink to"


def script() -> None:
    """The part of every page that this is about."""
    import streamlit as st

    from attention_viz.ui import visit
    from attention_viz.ui.controls import pickers
    from attention_viz.ui.controls.model import pick_model
    from attention_viz.ui.controls.wording import text_box
    from attention_viz.ui.parts.menu import show_examples

    pickers.begin()
    text_box("Sentence", "text")
    pick_model()
    show_examples()
    st.caption(f"chat {visit.shared().chat}")


def opened(**address: str) -> AppTest:
    screen = AppTest.from_function(script, default_timeout=60)
    for name, value in address.items():
        screen.query_params[name] = value
    screen.run()
    assert not screen.exception
    return screen


def box(screen: AppTest) -> str:
    assert not screen.exception
    return screen.text_area(key="text").value or ""


def test_choosing_a_model_brings_its_own_example_while_the_text_is_untouched() -> None:
    screen = opened()
    assert box(screen) == EXAMPLES[0]
    for model in (SMOLLM2, "induction", "scratch", "translation", "all-MiniLM-L6-v2"):
        screen.selectbox(key="source").select(model).run()
        assert box(screen) == own_example(model)


def test_a_text_that_was_typed_stays() -> None:
    screen = opened()
    screen.text_area(key="text").input("the cat").run()
    screen.selectbox(key="source").select(SMOLLM2).run()
    assert box(screen) == "the cat"


def test_an_example_that_was_chosen_stays() -> None:
    screen = opened()
    screen.button(key=f"example-all-MiniLM-L6-v2-{EXAMPLES[1]}").click().run()
    screen.selectbox(key="source").select(SMOLLM2).run()
    assert box(screen) == EXAMPLES[1]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ({"model": SMOLLM2}, MARY),
        ({"model": "induction"}, CATALOGUE["induction"].examples[0]),
        ({"model": SMOLLM2, "text": "the cat"}, "the cat"),
        ({"text": "the cat"}, "the cat"),
        ({"model": "scratch"}, EXAMPLES[0]),
    ],
)
def test_a_link_without_a_text_opens_on_the_example_of_its_model(address: dict[str, str], text: str) -> None:
    assert box(opened(**address)) == text


def test_examples_stand_by_model_and_bring_it_and_a_chat_is_one() -> None:
    screen = opened(model="induction")
    assert [one.label for one in screen.button if one.label != "Run"][:2] == list(CATALOGUE["induction"].examples)
    (message,) = CATALOGUE[SMOLLM2].messages
    screen.button(key=f"example-{SMOLLM2}-{message}").click().run()
    assert (box(screen), screen.session_state["visit"].selection.shared.model) == (message, SMOLLM2)
    assert "chat on" in [one.value for one in screen.caption]
    screen.button(key=f"example-{SMOLLM2}-{MARY}").click().run()
    assert box(screen) == MARY
    assert "chat off" in [one.value for one in screen.caption]


def test_no_example_stands_in_another_s_group() -> None:
    texts = [text for entry in CATALOGUE.values() for text in (*entry.examples, *entry.messages)]
    assert len(texts) == len(set(texts))
