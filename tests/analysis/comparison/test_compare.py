"""Two heads on common axes: what is aligned with what, and how far apart the rows are."""

import inspect
import math

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.analysis.comparison.align import AlignedAxis, align
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.inputs.check import trace_filled
from attention_viz.scratch.model import Scratch
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace

MODULE = Scratch(d_model=12, heads=3)


def tokens(*labels: str, **more: tuple[object, ...]) -> Tokens:
    return Tokens(labels, tuple(range(len(labels))), **more)


def bits(one: list[float], other: list[float]) -> float:
    """Jensen–Shannon divergence by its definition, term by term: H(middle) − (H(one) + H(other)) / 2."""

    def entropy(row: list[float]) -> float:
        return -sum(share * math.log2(share) for share in row if share > 0)

    middle = [(a + b) / 2 for a, b in zip(one, other, strict=True)]
    return entropy(middle) - (entropy(one) + entropy(other)) / 2


def with_weights(weights: list[list[float]], labels: tuple[str, ...], **more: tuple[object, ...]) -> Trace:
    """A trace of one head with given weights, their logarithm as a bias beside a query and key of 0."""
    rows = torch.tensor(weights, dtype=torch.float64)
    empty = torch.zeros(1, len(rows), 1, dtype=torch.float64)
    call = av.attend(empty, empty, empty, rows > 0, scale=1.0, bias=torch.where(rows > 0, rows, 1).log())
    names = tokens(*labels, **more)
    return Trace(
        layers={"encoder": (Layer(call, "0"),)},
        queries={"encoder": names},
        keys={"encoder": names},
        output=torch.zeros(len(rows), 1),
        provenance=Provenance(model="made by hand"),
        fidelity=Fidelity(0.0, 0.0, 1e-5, "nothing"),
    )


def test_a_replaced_word_stands_beside_the_one_that_it_replaced() -> None:
    texts = tokens("the", "bank", "of", "the", "river"), tokens("the", "bank", "of", "the", "city", "burns")
    assert align(*texts) == align(*texts, "token")  # one word became two
    axis = align(*texts)
    assert axis.labels == ("the", "bank", "of", "the", "river", "city", "burns")
    assert axis.one == (0, 1, 2, 3, 4, None, None)
    assert axis.other == (0, 1, 2, 3, None, 4, 5)
    assert (axis.both, axis.removed, axis.inserted) == ((0, 1, 2, 3), (4,), (5, 6))


def test_a_word_that_is_put_in_moves_the_others_and_parts_none() -> None:
    axis = align(tokens("the", "cat", "sat"), tokens("the", "old", "cat", "sat"))
    assert axis.labels == ("the", "old", "cat", "sat")
    assert axis.one == (0, None, 1, 2)
    assert axis.inserted == (1,)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (tokens("Ġbank"), tokens("bank"), True),
        (tokens("bank", words=(0,)), tokens("▁bank", words=(0,)), True),
        (tokens("Bank"), tokens("bank"), False),
        (tokens("flood", "##ed", words=(0, 0)), tokens("flood", "ed", words=(0, 0)), True),
        (tokens("ed", words=(0,)), tokens("##ed"), False),
        (tokens("[CLS]", special=(True,)), tokens("[CLS]"), False),
        (tokens("x", padding=(True,)), tokens("x"), False),
    ],
)
def test_tokens_are_the_same_by_label_place_in_the_word_and_kind(one: Tokens, other: Tokens, same: bool) -> None:
    assert (len(align(one, other, "token").both) == len(one)) is same


ROWS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=12)


@given(ROWS, ROWS)
def test_an_axis_holds_every_token_of_both_in_their_order_and_aligns_only_what_is_the_same(
    one: list[str], other: list[str]
) -> None:
    loose, axis = align(tokens(*one), tokens(*other)), align(tokens(*one), tokens(*other), "token")
    for each in (loose, axis):
        assert [at for at in each.one if at is not None] == list(range(len(one)))
        assert [at for at in each.other if at is not None] == list(range(len(other)))
    # What replaces each other differs, and is all that the two ways have apart.
    swapped = [(one[loose.one[at] or 0], other[loose.other[at] or 0]) for at in loose.substituted]
    assert all(mine != theirs for mine, theirs in swapped)
    assert [(loose.labels[at], loose.other_labels[at]) for at in loose.substituted] == swapped
    assert len(loose.both) == len(axis.both) + len(swapped) and len(loose) == len(axis) - len(swapped)
    assert [at for at in axis.one if at is not None] == list(range(len(one)))
    assert [at for at in axis.other if at is not None] == list(range(len(other)))
    for place in axis.both:
        assert one[axis.one[place] or 0] == other[axis.other[place] or 0] == axis.labels[place]
    assert sorted((*axis.both, *axis.removed, *axis.inserted)) == list(range(len(axis)))
    back = align(tokens(*other), tokens(*one))
    assert align(tokens(*one), tokens(*one)).both == tuple(range(len(one)))
    assert len(back) <= len(one) + len(other)


def test_by_hand_weight_on_a_token_that_the_other_lacks_is_weight_elsewhere() -> None:
    one = with_weights([[0.5, 0.5], [0.25, 0.75]], ("bank", "river"))
    other = with_weights([[0.5, 0.5], [0.0, 1.0]], ("bank", "city"))
    found = av.compare(one, other, 0, 0, align="token")
    assert found.keys.labels == ("bank", "river", "city")
    nothing = float("nan")
    expected = [[0.5, 0.5, nothing], [0.25, 0.75, nothing], [nothing] * 3]
    assert numpy.allclose(found.weights, expected, equal_nan=True)
    expected = [[0.5, nothing, 0.5], [nothing] * 3, [0.0, nothing, 1.0]]
    assert numpy.allclose(found.other_weights, expected, equal_nan=True)
    assert numpy.allclose(found.difference, [[0.0, -0.5, 0.5], [nothing] * 3, [nothing] * 3], equal_nan=True)
    # Half of the row moved to a token that the first text lacks: half a bit.
    assert numpy.allclose(found.divergence, [0.5, nothing, nothing], equal_nan=True)
    assert found.mean == pytest.approx(0.5)


def test_two_heads_of_one_text_are_as_far_apart_as_the_formula_says() -> None:
    trace = MODULE.trace("The cat sat on the mat")
    found = av.compare(trace, trace, 0, 0, other_head=2)
    pairs = zip(trace.weights(0, 0).double().tolist(), trace.weights(0, 2).double().tolist(), strict=True)
    rows = [bits(one, other) for one, other in pairs]
    assert found.divergence.tolist() == pytest.approx(rows, abs=1e-6)
    assert found.mean == pytest.approx(sum(rows) / len(rows), abs=1e-6)
    assert torch.equal(found.difference, (trace.weights(0, 2).double() - trace.weights(0, 0).double()))


WORDS = st.lists(st.sampled_from(["the", "cat", "sat", "on", "mat", "old"]), min_size=1, max_size=7).map(" ".join)


@settings(max_examples=20)
@given(WORDS, WORDS)
def test_of_any_two_texts_the_numbers_are_those_of_the_union_worked_out_row_by_row(text: str, second: str) -> None:
    one, other = MODULE.trace(text), MODULE.trace(second)
    found = av.compare(one, other, 0, 1)
    assert ((found.divergence >= 0) & (found.divergence <= 1))[list(found.queries.both)].all()
    mirrored = av.compare(other, one, 0, 1)
    if len(mirrored.queries.both) == len(found.queries.both) == len(found.queries):
        assert mirrored.mean == pytest.approx(found.mean, abs=1e-6)
    for place in found.queries.both:
        row, second_row = found.queries.one[place], found.queries.other[place]
        assert row is not None and second_row is not None
        rows = [
            [float(weights[query, at]) if at is not None else 0.0 for at in axis]
            for weights, query, axis in (
                (one.weights(0, 1), row, found.keys.one),
                (other.weights(0, 1), second_row, found.keys.other),
            )
        ]
        assert float(found.divergence[place]) == pytest.approx(bits(*rows), abs=1e-5)
    each = divergences(one, other)
    assert each.shape == (1, 3)
    means = [av.compare(one, other, 0, head).mean for head in range(3)]
    assert each[0].tolist() == pytest.approx(means, abs=1e-6, nan_ok=True)


def test_the_same_run_is_nothing_apart() -> None:
    trace = MODULE.trace("The cat sat")
    assert av.compare(trace, trace, 0, 1).mean == 0
    assert divergences(trace, trace).tolist() == [[0, 0, 0]]


def test_what_was_replaced_has_a_partner_and_what_was_added_has_none() -> None:
    axis = align(tokens("a", "bank", "of", "sand", "x"), tokens("a", "red", "river", "of", "x", "new"))
    written = dict(enumerate(axis.labels))
    found = {written[place]: None if (at := axis.partner(place)) is None else written[at] for place in written}
    assert found["bank"] == "red" and found["red"] == "bank"
    assert [found[same] for same in ("a", "of", "x")] == ["a", "of", "x"]
    assert [found[alone] for alone in ("river", "sand", "new")] == [None] * 3
    assert [written[axis.place_of(position)] for position in range(5)] == ["a", "bank", "of", "sand", "x"]


def test_padding_is_aligned_and_left_out_of_the_mean() -> None:
    one, other = trace_filled(MODULE, "The cat sat", 5), trace_filled(MODULE, "The cat ran", 5)
    found = av.compare(one, other, 0, 0, align="token")
    assert len(found.queries.both) == 4
    assert found.queries.counted == (True, True, False, False, False, False)
    assert found.mean == pytest.approx(float(found.divergence[:2].mean()))


def test_without_a_token_in_common_nothing_is_claimed() -> None:
    found = av.compare(MODULE.trace("one two"), MODULE.trace("three"), 0, 0)
    assert found.queries.both == ()
    assert math.isnan(found.mean)
    assert found.divergence.isnan().all() and found.difference.isnan().all()
    assert divergences(MODULE.trace("one two"), MODULE.trace("three")).isnan().all()


def test_every_head_against_one_finds_the_head_itself() -> None:
    trace = MODULE.trace("The cat sat on the mat")
    apart = divergences(trace, trace, head=(0, 1))
    assert float(apart[0, 1]) == pytest.approx(0, abs=1e-6)
    assert float(apart[0, 2]) == pytest.approx(av.compare(trace, trace, 0, 1, other_head=2).mean, abs=1e-6)


def test_runs_of_other_heads_are_compared_two_by_two_only() -> None:
    one, other = MODULE.trace("The cat sat"), Scratch(d_model=8, heads=2).trace("The cat sat")
    with pytest.raises(av.TraceError, match="got 1 layers × 3 heads and 1 layers × 2 heads"):
        divergences(one, other)
    assert divergences(one, other, head=(0, 2)).shape == (1, 2)


@pytest.mark.parametrize("wrong", [{"layer": 1}, {"other_layer": 5}])
def test_a_layer_that_is_not_there_is_refused(wrong: dict[str, int]) -> None:
    trace = MODULE.trace("The cat sat")
    with pytest.raises(av.TraceError, match="the encoder has only layer 0"):
        av.compare(trace, trace, **{"layer": 0, "head": 0, **wrong})
    with pytest.raises(av.ShapeError):
        av.compare(trace, trace, 0, 0, other_head=3)


def test_words_are_aligned_where_pieces_were_merged() -> None:
    pieces = with_weights([[1.0, 0.0], [0.5, 0.5]], ("flood", "##ed"), words=(0, 0))
    whole = with_weights([[1.0]], ("flooded",), words=(0,))
    assert av.compare(pieces, whole, 0, 0).queries.both == ()
    assert av.compare(av.merge_words(pieces), whole, 0, 0).mean == 0


def test_an_axis_of_two_different_texts_says_where_padding_begins() -> None:
    assert align(tokens("a", "b", padding=(False, True)), tokens("a")) == AlignedAxis(
        ("a", "b"), (0, 1), (0, None), (True, False)
    )


def test_beyond_layer_and_head_everything_is_named() -> None:
    for function, count in ((av.compare, 4), (divergences, 2)):
        kinds = [entry.kind for entry in inspect.signature(function).parameters.values()]
        assert kinds[:count] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * count
        assert set(kinds[count:]) == {inspect.Parameter.KEYWORD_ONLY}
