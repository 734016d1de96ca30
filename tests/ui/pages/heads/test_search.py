"""The search for heads by words greets no text with words that aren't in it."""

from streamlit.testing.v1 import AppTest

BANK = "the bank of the river"


def script() -> None:
    """The search, beside a box for the text."""
    import streamlit as st

    import attention_viz as av
    from attention_viz.analysis.search import DETECTORS
    from attention_viz.explorer.atlas_payload import HeadTables
    from attention_viz.ui import visit
    from attention_viz.ui.address import State
    from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
    from attention_viz.ui.pages.heads.search import Atlas, follow_text, show_search
    from attention_viz.ui.selection import PageOpened

    visit.send(PageOpened({}, (HEADS_CHOICES,)))
    visit.settle(HEADS_CHOICES, DETECTORS)
    text = st.text_area("Sentence", "the bank of the river", key="text")
    trace, here = av.scratch(text), visit.here()
    here.selection = follow_text(here.selection, text)
    parts = {"encoder": HeadTables(av.head_table(trace), av.roles(trace))}
    show_search(Atlas(trace, "encoder", (), (), parts), State(), visit.chosen(HEADS_CHOICES))


def words(screen: AppTest) -> tuple[str | None, str | None]:
    assert not screen.exception
    return screen.text_input(key="heads-query_word").value, screen.text_input(key="heads-key_word").value


def typed(screen: AppTest, text: str) -> AppTest:
    return screen.text_area(key="text").input(text).run()


def test_the_words_that_the_page_opens_on_are_only_for_a_text_that_has_them() -> None:
    screen = AppTest.from_function(script, default_timeout=60).run()
    assert words(screen) == ("bank", "river")
    assert words(typed(screen, "Mary and John")) == ("", "")
    assert "Type the query word and the key word" in screen.caption[0].value
    assert words(typed(screen, BANK)) == ("bank", "river")


def test_words_that_were_typed_stay_and_boxes_that_were_emptied_stay_empty() -> None:
    screen = AppTest.from_function(script, default_timeout=60).run()
    screen.text_input(key="heads-query_word").input("the").run()
    assert words(typed(screen, "Mary and John")) == ("the", "river")
    for name in ("query", "key"):
        screen.text_input(key=f"heads-{name}_word").input("").run()
    assert words(typed(screen, BANK)) == ("", "")
