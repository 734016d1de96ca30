"""What can't be computed is refused in our own words; what can be is computed, whatever stands before the positions."""

from collections.abc import Callable, Iterator

import jaxtyping
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.operation.masks import recognise


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As outside the tests, where nobody checks types before the code itself does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ((9, 2), (8, 4, 2), (8, 4, 5)),
        ((9, 2), (8, 4, 2), (4, 5)),
        ((9, 2), (4, 2), (8, 4, 5)),
        ((3, 8, 9, 2), (4, 2), (8, 4, 5)),
        ((0, 9, 2), (0, 4, 2), (0, 4, 5)),
        ((2, 0, 9, 2), (2, 0, 4, 2), (2, 0, 4, 5)),
        ((9, 2), (0, 4, 2), (0, 4, 5)),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_the_output_is_the_values_mixed_by_the_weights_whatever_leading_axes_there_are(
    query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], masked: bool
) -> None:
    allowed = torch.ones(9, 4, dtype=torch.bool).tril() if masked else None
    call = av.attend(rows(*query), rows(*key), rows(*value), allowed)
    torch.testing.assert_close(call.output, call.weights @ call.value)


@pytest.mark.parametrize("number", [2**64, -(2**70)])
def test_a_whole_number_of_any_size_is_a_scale(number: int) -> None:
    words = rows(1, 3, 2)
    whole, floating = (av.attend(words, words, words, scale=one) for one in (number, float(number)))
    assert torch.equal(whole.weights, floating.weights)


def test_a_whole_number_of_any_size_is_a_softcap() -> None:
    words = rows(1, 3, 2)
    assert torch.equal(av.attend(words, words, words, softcap=2**64).weights, av.attend(words, words, words).weights)


def test_of_no_tokens_a_mask_leaves_nothing_and_no_error() -> None:
    nothing = torch.zeros(1, 0, 2)
    call = av.attend(nothing, nothing, nothing, torch.ones(0, 0, dtype=torch.bool))
    assert call.output.shape == (1, 0, 2) and call.weights.shape == (1, 0, 0)


WORDS = rows(3, 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: av.attend([1], WORDS, WORDS), "query has to be a tensor; got list"),
        (lambda: av.attend(WORDS, WORDS, WORDS.to_sparse()), "value has to be a dense tensor"),
        (lambda: av.attend(WORDS, WORDS, WORDS, scale=10**400), "scale has to be a finite number; got one far beyond"),
        (lambda: av.attend(WORDS, WORDS, WORDS, scale=10**5000), "scale has to be a finite number; got one far beyond"),
        (lambda: av.attend(WORDS, WORDS, WORDS, softcap=10**400), "softcap has to be a finite number above 0, or None"),
        (lambda: av.attend(WORDS, WORDS, WORDS, scale=True), "scale has to be a number; got True"),
        (
            lambda: av.attend(WORDS, WORDS, WORDS, torch.ones(3, 3, dtype=torch.bool, device="meta")),
            "allowed has to be on the query's device, cpu; got one on meta",
        ),
        (lambda: av.attend(WORDS, WORDS.to("meta"), WORDS), "key has to be on the query's device, cpu"),
        (lambda: av.masks.sliding_window(3, float("nan")), "a window of nan was asked for"),
        (lambda: av.masks.prefix(3, 1.5), "a prefix of 1.5 was asked for"),
        (lambda: recognise(rows(3, 3).abs() + 0.1), "allowed has to be boolean"),
        (lambda: recognise(torch.ones(2, 3, 3, dtype=torch.bool)), "allowed has to be boolean, .* got torch.bool"),
        (lambda: av.scratch("a b").attention("0"), "no layer '0'"),
        (lambda: av.scratch("a b").weights(0, "1"), "head '1' was asked for"),
        (lambda: av.scratch("a b").weights(0, 1.0), "head 1.0 was asked for"),
        (lambda: av.scratch(5), "a text must be a str; got int"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_our_words(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(av.AttentionVizError, match=message):
        ask()


@pytest.mark.usefixtures("unchecked")
def test_a_softcap_that_is_text_is_refused_after_the_same_number_too() -> None:
    for _ in range(2):
        assert av.attend(WORDS, WORDS, WORDS, softcap=50.0).weights.shape == (3, 3)
    with pytest.raises(av.ShapeError, match=r"softcap has to be a number; got '50\.0'"):
        av.attend(WORDS, WORDS, WORDS, softcap="50.0")  # pyright: ignore[reportArgumentType]
