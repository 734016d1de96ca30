"""What is said of how a model reads a text."""

import pytest

from attention_viz.ui.parts.drawing import accent_words
from tests.shipped import shipped

LEFT_OUT = "all-MiniLM-L6-v2 strips accents: it reads "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The bank of the river was flooded", ""),
        ("Der Bär schläft", f"{LEFT_OUT}“Bär” as “bar” and “schläft” as “schlaft”."),
        # A word that comes again is told once, however its accents are typed.
        ("cafe\u0301 caf\u00e9 cafe", f"{LEFT_OUT}“café” as “cafe”."),
        (
            "la mère à côté du garçon",
            f"{LEFT_OUT}“mère” as “mere”, “à” as “a”, “côté” as “cote” and 1 more word likewise.",
        ),
        # Words that it doesn't know at all are told of elsewhere.
        ("猫 sat", ""),
    ],
)
def test_it_is_told_which_words_are_read_without_their_accents(text: str, said: str) -> None:
    assert accent_words(shipped("all-MiniLM-L6-v2").trace(text)) == said


def test_nothing_is_told_of_a_model_that_reads_accents() -> None:
    assert accent_words(shipped("SmolLM2-135M-Instruct").trace("Le garçon français")) == ""
