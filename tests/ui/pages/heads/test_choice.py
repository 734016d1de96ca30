"""What the Heads page reads from an address and writes back, without a page."""

from typing import Any

import pytest
import streamlit

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.pages.heads import choice as heads_choice
from attention_viz.ui.pages.heads.choice import SEARCHES, VIEWS, HeadsChoice, begin_heads, held, told
from attention_viz.ui.pages.heads.texts import split_texts

ALLOWED = {"metric": ("entropy", "next"), "beside": ("previous",), "view": VIEWS, "search": SEARCHES}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    state: dict[str, Any] = {}
    monkeypatch.setattr(streamlit, "session_state", state)
    monkeypatch.setattr(heads_choice, "went_through_history", lambda: True)
    return state


def test_an_address_is_read_and_written_back(session: dict[str, Any]) -> None:
    asked = {"metric": "next", "view": "map", "search": "pattern", "pattern": "5-abc", "texts": "one\ntwo", "query": ""}
    begin_heads(asked, ALLOWED)
    assert held() == HeadsChoice(**asked)
    assert asked.items() <= held().address().items() and told() == []


def test_what_is_not_there_is_told_until_something_else_is_chosen(session: dict[str, Any]) -> None:
    begin_heads({"view": "3d", "metric": "next"}, ALLOWED)
    assert held() == HeadsChoice(metric="next")
    assert told() == [
        "The address asks for view “3d”. Allowed here: colours, patterns, scatter, map. Shown instead: colours."
    ]
    session["heads-view"] = "map"
    assert told() == []


def test_going_back_empties_what_was_drawn_later_but_keeps_what_no_link_could_carry(session: dict[str, Any]) -> None:
    begin_heads({}, ALLOWED)
    long = "word " * SETTINGS.longest_link
    session.update({"heads-pattern": "5-abc", "heads-texts": long, "heads-metric": "next"})
    assert "texts" not in held().address()
    begin_heads({"metric": "entropy"}, ALLOWED)
    assert held() == HeadsChoice(texts=long)


def test_more_texts_are_the_lines_with_something_in_them() -> None:
    assert split_texts(" one \n\n\t\ntwo") == ["one", "two"]
    assert split_texts("") == []
