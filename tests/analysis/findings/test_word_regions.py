"""A word that attends to one region of the image beside it, and controls that don't count."""

import pytest
import torch

import attention_viz as av
from attention_viz.trace.tokens import Tokens
from tests.analysis.findings.test_pictures import trace_of

SIDE, WORDS = 6, ("what", "colour", "is", "the", "red", "circle")
PATCHES = SIDE * SIDE
# Two by two patches in the lower right corner.
BLOCK = [row * SIDE + column for row in (4, 5) for column in (4, 5)]
RED = PATCHES + WORDS.index("red")


def tokens() -> Tokens:
    places = [(float(row), float(column)) for row in range(SIDE) for column in range(SIDE)]
    count = PATCHES + len(WORDS)
    return Tokens(
        (*(f"{row:g},{column:g}" for row, column in places), *WORDS),
        None,
        words=(*[None] * PATCHES, *range(len(WORDS))),
        spelling=("text",) * count,
        place=(*places, *[None] * len(WORDS)),
    )


def weights() -> torch.Tensor:
    """Every row attends to all evenly, by layer and head."""
    count = PATCHES + len(WORDS)
    return torch.ones(2, 4, count, count, dtype=torch.float64).tril()


def found_in(numbers: torch.Tensor) -> list[av.Finding]:
    trace = trace_of(numbers, tokens(), "decoder")
    return [one for one in av.findings(trace, 20) if one.kind == "region of a word"]


def test_a_word_that_attends_to_one_region_is_found_with_its_share_and_times_its_area() -> None:
    numbers = weights()
    numbers[1, 2, RED, BLOCK] = 60
    (found,) = found_in(numbers)
    assert (found.layer, found.head, found.query) == (1, 2, RED)
    assert found.key in BLOCK
    row = numbers[1, 2, RED] / numbers[1, 2, RED].sum()
    share, seen = float(row[BLOCK].sum()), float(row[:PATCHES].sum())
    assert found.strength == pytest.approx(share, rel=1e-5)
    times = share / seen / (4 / PATCHES)
    assert found.text == f"“red” attends to one region at the lower right: {share:.2f}, {times:.0f} times its area"


def test_a_region_that_another_one_equals_is_none() -> None:
    numbers = weights()
    numbers[1, 2, RED, BLOCK] = 60
    numbers[1, 2, RED, [0, 1, SIDE, SIDE + 1]] = 45
    assert found_in(numbers) == []


def test_a_region_to_which_every_word_attends_is_none() -> None:
    numbers = weights()
    for at in range(PATCHES, PATCHES + len(WORDS)):
        numbers[1, 2, at, BLOCK] = 60
    assert found_in(numbers) == []


def test_words_that_attend_evenly_have_none() -> None:
    assert found_in(weights()) == []


@pytest.mark.parametrize(("patches", "named"), [(BLOCK[3:], "one patch"), (BLOCK[2:], "two patches")])
def test_few_patches_are_counted_instead_of_their_area(patches: list[int], named: str) -> None:
    numbers = weights()
    numbers[1, 2, RED, patches] = 120
    (found,) = found_in(numbers)
    share = float(numbers[1, 2, RED, patches].sum() / numbers[1, 2, RED].sum())
    assert found.text == f"“red” attends to {named} at the lower right: {share:.2f}"
