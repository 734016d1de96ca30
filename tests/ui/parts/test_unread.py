"""What is said first of a text that a model can't read."""

from html import unescape
from urllib.parse import quote

import pytest

from attention_viz.inputs.text import unknown_parts
from attention_viz.sources.catalogue import of_text
from attention_viz.ui.parts.drawing import long_words
from attention_viz.ui.parts.unread import counted
from tests.shipped import MINILM, SMOLLM2, shipped
from tests.ui.screens import Screen

ANY = "แมว 猫猫 😀 👩\u200d👧 ﷺ \u0007 \ud7ff ꙮ"


@pytest.mark.parametrize("page", ["", "heads"])
def test_a_model_that_reads_it_is_offered_first_and_keeps_the_text(page: str) -> None:
    screen = Screen().open(f"/{page}?text={quote('แมวนั่ง')}")
    assert f"{MINILM} can’t read this: 1 of 1 words unknown." in unescape(screen.words)
    screen.press(f"Read it with {SMOLLM2}")
    assert screen.address["model"] == SMOLLM2 and screen.address["text"] == "แมวนั่ง"
    assert "words unknown" not in screen.words and "Read it with" not in "".join(one.label for one in screen.app.button)


def test_a_few_unknown_words_are_named_in_a_note() -> None:
    screen = Screen().open(f"/?text={quote('The cat sat on 😀 and slept')}")
    assert "words unknown" not in screen.words and "Unknown words" in screen.menus
    said = unescape("".join(screen.written))
    assert "doesn't know 1 word of the sentence, and reads “[UNK]” (unknown) instead. Unknown here: “😀”." in said


@pytest.mark.parametrize(
    ("text", "unknown"), [("แมวนั่ง", (1, 1)), ("The bank", (0, 2)), ("猫 sat 😀", (2, 3)), ("unbelievable 😀", (1, 2))]
)
def test_words_are_counted_whole(text: str, unknown: tuple[int, int]) -> None:
    tokens = shipped(MINILM).trace(text).query_tokens()
    assert counted(tokens) == unknown
    assert len(unknown_parts(MINILM, shipped(MINILM).tokenizer, text)) == unknown[0]


@pytest.mark.parametrize("name", [name for name, entry in of_text().items() if entry.path])
def test_only_a_tokenizer_that_reads_every_byte_is_offered(name: str) -> None:
    tokenizer = shipped(name).tokenizer
    assert tokenizer is not None
    ids = tokenizer(ANY, add_special_tokens=False)["input_ids"]
    assert of_text()[name].reads_any == (tokenizer.decode(ids) == ANY)


def test_the_length_that_a_model_was_trained_on_is_the_cards() -> None:
    for name, entry in of_text().items():
        if entry.trained_on:
            assert entry.path is not None
            card = (entry.path / "README.md").read_text()
            assert f"sequence length was limited to {entry.trained_on} tokens" in card, name
    model = shipped(MINILM)
    assert long_words(model.trace("a " * 126)) == ""
    assert long_words(model.trace("a " * 127)) == (
        f"{MINILM} was trained on up to 128 tokens, by its model card, and this text has 129. Beyond that, positions "
        "may mislead."
    )
