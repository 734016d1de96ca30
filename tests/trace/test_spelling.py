"""Tokens are read by people as the explorer writes them, whatever the tokenizer writes around its pieces."""

import json
from pathlib import Path
from typing import Any

import pytest

from attention_viz.errors import TraceError
from attention_viz.trace.spelling import SPELLINGS, carries, spell, visible, without_marks
from attention_viz.trace.tokens import Tokens

# The same table as the explorer's own function is tested on.
TABLE: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "explorer" / "spelling.json").read_text())


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['spelling']}:{row['label']!a}")
def test_a_piece_is_a_light_mark_and_a_text_in_which_everything_is_seen(row: dict[str, Any]) -> None:
    assert spell(row["label"], row["spelling"]) == (row["mark"], row["text"])
    assert without_marks(row["label"], row["spelling"]) == row["plain"]
    assert carries(row["label"], row["spelling"]) == row["word"]


def test_the_table_has_every_spelling() -> None:
    assert {row["spelling"] for row in TABLE} == set(SPELLINGS)


def test_what_is_visible_can_be_made_visible_again() -> None:
    for row in TABLE:
        assert visible(row["text"]).replace("␣", " ") == row["text"].replace("␣", " ")


def test_tokens_are_written_by_their_own_spelling() -> None:
    spelling = ("text", "byte-level", "byte-level", "byte-level")
    tokens = Tokens(("<s>", "Mary", "ĠnaÃ", "¯ve"), (0, 1, 2, 3), (None, 0, 1, 1), spelling=spelling)
    assert tokens.written == ("<s>", "Mary", "·na⟨C3⟩", "⟨AF⟩ve")
    assert tokens.texts[1] == "Mary"
    assert tokens.text_of((2, 3)) == "naïve"  # a character that two pieces share
    assert tokens.write("ĠJohn") == "·John"
    assert Tokens.of_ids((5, 6)).written == ("5", "6")


def test_a_spelling_that_there_is_not_is_refused() -> None:
    with pytest.raises(TraceError, match=r"unknown spelling 'runes'; choose unknown, text, byte"):
        Tokens(("a",), (0,), spelling=("runes",))
