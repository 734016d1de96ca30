import inspect

import pytest

from attention_viz import errors
from attention_viz.errors import AttentionVizError, TextTooLong, UnusableText, first_line

OURS = [kind for name in errors.__all__ if not issubclass(kind := getattr(errors, name), Warning)]


@pytest.mark.parametrize("kind", OURS)
def test_every_error_of_ours_can_be_caught_as_one(kind: type[Exception]) -> None:
    assert issubclass(kind, AttentionVizError) and kind.__doc__


def test_every_error_of_ours_is_public() -> None:
    defined = {name for name, kind in vars(errors).items() if inspect.isclass(kind)}
    assert defined == set(errors.__all__)


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ShapeError", ValueError),
        ("ModelNotFound", LookupError),
        ("UnusableText", ValueError),
        ("TraceError", ValueError),
    ],
)
def test_an_error_is_also_the_builtin_that_a_caller_would_expect(name: str, builtin: type[Exception]) -> None:
    assert issubclass(getattr(errors, name), builtin)


def test_a_text_that_is_too_long_says_by_how_much_and_what_to_do() -> None:
    error = TextTooLong("a model", 600, 512)
    assert isinstance(error, UnusableText)
    assert (error.count, error.limit) == (600, 512)
    assert str(error).startswith("a model reads at most 512 tokens, and this text has 600.")
    assert "model.fit(text)" in str(error)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("it broke\nask your admin", "it broke"),
        ("wrong:\n\n   6 heads\nsee the manual", "wrong: 6 heads"),
        ("wrong:\nof two:\n 6 heads\n", "wrong: of two: 6 heads"),
        ("nothing follows:", "nothing follows:"),
        (" \n", "no reason given"),
    ],
)
def test_of_a_foreign_error_the_reason_is_told_and_no_advice(told: str, said: str) -> None:
    assert first_line(ValueError(told)) == said
