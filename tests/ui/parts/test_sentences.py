"""Messages of ours as sentences of a page."""

import pytest
import streamlit as st

from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.parts.markdown import as_sentence


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("there is no such folder", r"There is no such folder\."),
        ("mine came without a tokenizer", r"mine came without a tokenizer\."),
        ("mine's tokenizer took longer", r"mine's tokenizer took longer\."),
        ("mine: config.json names no model_type", r"mine\: config\.json names no model\_type\."),
        ("other holds no config.json", r"other holds no config\.json\."),
        ("mines are no name of a model", r"Mines are no name of a model\."),
        ("all-MiniLM-L6-v2 reads a text", r"all\-MiniLM\-L6\-v2 reads a text\."),
        ("gpt2 reads a text", r"gpt2 reads a text\."),
        ("d_model is 7", r"d\_model is 7\."),
        ("cross-attention isn't there!", r"Cross\-attention isn't there\!"),
        ("", r"\."),
    ],
)
def test_a_sentence_begins_with_a_capital_and_a_name_stays_as_it_is(
    message: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit, "shared", lambda: State(model="/models/mine"))
    monkeypatch.setattr(st, "query_params", {"other_model": "/models/other"})
    assert as_sentence(message) == sentence


def test_outside_of_a_page_no_model_is_named() -> None:
    assert as_sentence("mine is a word like any other") == r"Mine is a word like any other\."
