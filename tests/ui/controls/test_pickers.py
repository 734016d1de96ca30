"""The pickers that all pages share, without a browser."""

import pytest
import streamlit as st

from attention_viz.ui.controls import pickers


def test_a_picker_s_words_in_the_place_of_its_number_are_what_was_held_before(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"layer": 3, "head": "11", "held": {"layer": 2, "head": 4}}
    monkeypatch.setattr(st, "session_state", state)
    pickers._keep_whole()  # pyright: ignore[reportPrivateUsage]
    assert (state["layer"], state["head"]) == (3, 4)
