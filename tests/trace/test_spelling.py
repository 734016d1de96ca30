"""Tokens are read by people as the explorer writes them, whatever the tokenizer writes around its pieces."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from attention_viz.errors import TraceError
from attention_viz.inputs.labelling import spellings
from attention_viz.sources.catalogue import of_text
from attention_viz.trace.spelling import (
    SPELLINGS,
    Character,
    carries,
    cut,
    cut_characters,
    decode,
    spell,
    visible,
    without_marks,
)
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


def test_a_token_has_one_name_with_its_number_and_bytes_have_their_character() -> None:
    thai = ("à¸", "ģ")  # three bytes of "ก" as byte-level BPE writes them
    tokens = Tokens(("The", "Ġthe", *thai, *thai, "Ġ"), spelling=("byte-level",) * 7)
    assert tokens.names == ("The₁", "the₂", "ก⟨E0 B8⟩₁", "ก⟨81⟩₁", "ก⟨E0 B8⟩₂", "ก⟨81⟩₂", "␣")
    assert tokens.numbered[:2] == ("The₁", "·the₂") and tokens.occurrences == (1, 2, 1, 1, 2, 2, 0)
    assert cut("tokenization₁₂", 8) == "token…₁₂" and cut("tokenize₂", 9) == "tokenize₂"


def test_a_spelling_that_there_is_not_is_refused() -> None:
    with pytest.raises(TraceError, match=r"unknown spelling 'runes'; choose unknown, text, byte"):
        Tokens(("a",), (0,), spelling=("runes",))


CUT = "ก 😀 é 👩\u200d👧 河 ﷺ a"


@pytest.mark.parametrize("name", [name for name, entry in of_text().items() if entry.path and name != "scratch"])
def test_cut_characters_are_those_of_the_text_in_every_shipped_tokenizer(name: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(of_text()[name].path)
    ids = tokenizer(CUT, add_special_tokens=False)["input_ids"]
    labels, how = tokenizer.convert_ids_to_tokens(ids), spellings(tokenizer, ids)
    found = cut_characters(labels, how)
    pieces = [decode(label, kind).encode("utf-8", "surrogateescape") for label, kind in zip(labels, how, strict=True)]
    for one in found:
        last = one.first + len(one.counts)
        assert one.text in CUT and one.text.encode() in b"".join(pieces[one.first : last])
        assert len(one.counts) > 1 and sum(one.counts) == len(one.text.encode())
        # No earlier or later start has as many of its bytes.
        assert all(0 < count <= len(piece) for count, piece in zip(one.counts, pieces[one.first : last], strict=True))
    halves = "".join(decode(label, kind) for label, kind in zip(labels, how, strict=True))
    assert sum("\udc80" <= sign <= "\udcff" for sign in halves) == sum(sum(one.counts) for one in found)
    assert bool(found) == of_text()[name].reads_any


def test_a_character_with_bytes_missing_is_half_a_one() -> None:
    thai, smile = ["à¸", "ģ"], ["ðŁ", "ĺ"]
    found = cut_characters([*thai, "a", *smile, "Ġb", "ģ"], ["byte-level"] * 7)
    assert found == [
        Character("ก", 0, (2, 1)),
        Character("", 3, (2, 1)),
        Character("", 6, (1,)),
    ]
    # A second character begins before the first has ended.
    assert cut_characters(["à¸", "à¸ģ"[:2], "ģ"], ["byte-level"] * 3) == [
        Character("", 0, (2,)),
        Character("ก", 1, (2, 1)),
    ]
    assert cut_characters(["<0xE0>", "<0xB8>", "<0x81>"], ["sentencepiece"] * 3) == [Character("ก", 0, (1, 1, 1))]
    assert cut_characters(["ð", "Ÿ"], ["text"] * 2) == []


def test_unknown_words_are_told_apart_in_lists() -> None:
    labels = ("[CLS]", "[UNK]", "mat", "[UNK]", "mat", "[SEP]")
    tokens = Tokens(labels, None, special=(True, *[False] * 4, True), spelling=("wordpiece",) * len(labels))
    assert tokens.occurrences == (0, 1, 1, 2, 2, 0) and (tokens.names[1], tokens.names[3]) == ("[UNK]₁", "[UNK]₂")
