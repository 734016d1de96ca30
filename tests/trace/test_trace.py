import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest
import torch

from attention_viz.errors import AttentionVizError, ShapeError, TraceError
from attention_viz.operation import masks
from attention_viz.operation.attention import attend
from attention_viz.trace.rerun import Relevance, Rerun
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from attention_viz.trace.trace_data import attach

SOURCE, TARGET, HEADS, D_MODEL = 5, 3, 2, 7
GOOD = Fidelity(1e-7, 2e-7, 1e-5, "itself")


def layer(queries: int, keys: int, heads: int = HEADS, label: str = "0", **around: Any) -> Layer:
    query, key = torch.randn(heads, queries, 4), torch.randn(heads, keys, 4)
    return Layer(attend(query, key, torch.randn(heads, keys, 6)), label, **around)


def tokens(count: int) -> Tokens:
    return Tokens.of_ids(range(10, 10 + count))


def trace(**changes: Any) -> Trace:
    """An encoder–decoder of two encoder layers, the second with more heads."""
    parts: dict[str, Any] = {
        "layers": {
            "encoder": (layer(SOURCE, SOURCE), layer(SOURCE, SOURCE, heads=4, label="2")),
            "decoder": (layer(TARGET, TARGET),),
            "cross": (layer(TARGET, SOURCE),),
        },
        "queries": {"encoder": tokens(SOURCE), "decoder": tokens(TARGET), "cross": tokens(TARGET)},
        "keys": {"encoder": tokens(SOURCE), "decoder": tokens(TARGET), "cross": tokens(SOURCE)},
        "output": torch.randn(TARGET, D_MODEL),
        "provenance": Provenance("a model", "a text"),
        "fidelity": GOOD,
    }
    return Trace(**parts | changes)


def one_stream(**around: Any) -> Trace:
    rows = {"decoder": tokens(TARGET)}
    return trace(layers={"decoder": (layer(TARGET, TARGET, **around),)}, queries=rows, keys=rows)


def test_each_stream_has_its_layers_heads_and_tokens() -> None:
    one = trace()
    assert one.streams == ("encoder", "decoder", "cross")
    assert [one.layer_count(stream) for stream in one.streams] == [2, 1, 1]
    assert [one.head_count(number, "encoder") for number in (0, 2)] == [2, 4]
    assert (len(one.query_tokens("cross")), len(one.key_tokens("cross"))) == (TARGET, SOURCE)
    assert one.weights(0, 1, "cross").shape == (TARGET, SOURCE)
    assert one.layer(2, "encoder").label == one.label(2, "encoder") == "2"
    assert one.layer_numbers("encoder") == (0, 2)


def test_weights_are_those_of_the_head() -> None:
    one = trace()
    torch.testing.assert_close(one.weights(2, 3, "encoder"), one.attention(2, "encoder").weights[3])


def test_no_stream_stands_for_the_only_one_and_never_for_one_of_several() -> None:
    assert one_stream().layer_count() == 1 and one_stream().stream() == "decoder"
    for ask in (trace().layer_count, trace().query_tokens, trace().key_tokens, lambda: trace().attention(0)):
        with pytest.raises(TraceError, match="no stream was named; this trace has encoder, decoder, cross"):
            ask()


@pytest.mark.parametrize("number", [-1, 1, 99])
def test_a_layer_that_is_not_there_is_refused_by_name(number: int) -> None:
    with pytest.raises(TraceError, match=f"no layer {number}; the encoder attends in layers 0 and 2"):
        trace().weights(number, 0, "encoder")


@pytest.mark.parametrize("head", [-3, 2, 99])
def test_a_head_that_is_not_there_is_refused_by_name(head: int) -> None:
    with pytest.raises(ShapeError, match=f"head {head}; this attention has 2 heads"):
        trace().weights(0, head, "encoder")


def test_a_stream_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(TraceError, match="unknown stream 'cross'; this trace has decoder"):
        one_stream().weights(0, 0, "cross")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"queries": {"encoder": tokens(4), "decoder": tokens(3), "cross": tokens(3)}},
            "encoder layer 0 .* for 4 × 5 tokens",
        ),
        ({"queries": {"encoder": tokens(5)}}, "one of them is missing"),
        ({"layers": {}, "queries": {}, "keys": {}}, "got none"),
        (
            {"layers": {"vision": (layer(5, 5),)}},
            "streams named picture, .*, readout; got vision",
        ),
        ({"layers": {"encoder": (), "decoder": (), "cross": ()}}, "at least one layer; the encoder has none"),
    ],
)
def test_parts_that_do_not_fit_together_make_no_trace(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        trace(**changes)


def test_an_attention_with_a_batch_axis_makes_no_trace() -> None:
    query = torch.randn(1, HEADS, TARGET, 4)
    rows = {"decoder": tokens(TARGET)}
    with pytest.raises(TraceError, match=r"got \(head, query, key\) = \(1, 2, 3, 3\)"):
        trace(layers={"decoder": (Layer(attend(query, query, query), "0"),)}, queries=rows, keys=rows)


@pytest.mark.parametrize("what", ["embeddings", "joined"])
def test_what_goes_in_and_out_has_a_row_for_each_query(what: str) -> None:
    assert getattr(one_stream(**{what: torch.ones(TARGET, D_MODEL)}).layer(0), what).shape == (TARGET, D_MODEL)
    with pytest.raises(TraceError, match=rf"decoder layer 0 needs {what} of \(query, d_model\) for 3 tokens"):
        one_stream(**{what: torch.ones(SOURCE, D_MODEL)})


@pytest.mark.parametrize("what", ["query", "key"])
def test_what_positions_were_turned_into_has_the_shape_of_what_came_out(what: str) -> None:
    assert one_stream(**{f"unrotated_{what}": torch.ones(HEADS, TARGET, 4)}).layer(0)
    with pytest.raises(TraceError, match=rf"an unrotated {what} of the {what}'s shape \(2, 3, 4\); got \(2, 3, 5\)"):
        one_stream(**{f"unrotated_{what}": torch.ones(HEADS, TARGET, 5)})


def test_a_trace_is_closed_to_changes() -> None:
    layers = {"decoder": (layer(TARGET, TARGET),)}
    rows = {"decoder": tokens(TARGET)}
    one = trace(layers=layers, queries=rows, keys=rows)
    layers["encoder"] = (layer(9, 9),)
    assert one.streams == ("decoder",)
    with pytest.raises(AttributeError):
        one.output = torch.ones(1, 1)  # pyright: ignore[reportAttributeAccessIssue] -- that is the claim
    with pytest.raises(TypeError):
        one.layers["encoder"] = ()  # pyright: ignore[reportIndexIssue] -- likewise


def test_fidelity_is_measured_once_and_only_when_asked_for() -> None:
    calls: list[int] = []

    def measure() -> Fidelity:
        calls.append(1)
        return GOOD

    one = attach(trace(fidelity=None), Rerun(measure))
    assert not calls
    assert one.fidelity is one.fidelity is GOOD
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("output_error", "weight_error", "ok"),
    [(0.0, 0.0, True), (1e-5, 1e-5, True), (2e-5, 0.0, False), (0.0, 2e-5, False), (float("nan"), 0.0, False)],
)
def test_fidelity_is_ok_only_with_both_errors_within_the_bound(
    output_error: float, weight_error: float, ok: bool
) -> None:
    assert Fidelity(output_error, weight_error, 1e-5, "itself").ok is ok
    assert Fidelity(weight_error, output_error, 1e-5, "itself").ok is ok


def test_a_trace_introduces_itself_in_one_line() -> None:
    told = repr(trace())
    assert "'a model', 'a text'" in told and "cross: 1 layers × 2 heads × 3 × 5 tokens" in told and "\n" not in told


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr(torch.Tensor, "softmax", refuse)
    with pytest.raises(AssertionError, match="computed"):
        trace().weights(0, 0, "encoder")


def test_a_masked_trace_keeps_its_mask() -> None:
    query = torch.randn(HEADS, TARGET, 4)
    call = attend(query, query, query, masks.causal(TARGET))
    rows = {"decoder": tokens(TARGET)}
    one = trace(layers={"decoder": (Layer(call, "0"),)}, queries=rows, keys=rows)
    assert not one.weights(0, 1).triu(1).any()


def test_every_refusal_can_be_caught_as_one() -> None:
    with pytest.raises(AttentionVizError):
        trace().layer(99, "encoder")


def test_a_slow_comparison_of_one_trace_keeps_no_other_waiting() -> None:
    begun, release = threading.Event(), threading.Event()

    def slow() -> Fidelity:
        begun.set()
        assert release.wait(10)
        return GOOD

    one, other = attach(trace(fidelity=None), Rerun(slow)), attach(trace(fidelity=None), Rerun(lambda: GOOD))
    waiting = threading.Thread(target=lambda: one.fidelity)
    waiting.start()
    answered: list[Fidelity] = []
    asking = threading.Thread(target=lambda: answered.append(other.fidelity))
    try:
        assert begun.wait(10)
        asking.start()
        asking.join(5)
        assert answered == [GOOD]
    finally:
        release.set()
        waiting.join()
        asking.join()


def test_several_threads_that_ask_one_trace_make_one_comparison() -> None:
    calls: list[int] = []
    together = threading.Barrier(6)

    def measure() -> Fidelity:
        calls.append(1)
        threading.Event().wait(0.05)
        return GOOD

    one, answers = attach(trace(fidelity=None), Rerun(measure)), list[Fidelity]()

    def ask() -> None:
        together.wait(10)
        answers.append(one.fidelity)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and answers == [GOOD] * 6


def test_a_comparison_that_failed_is_made_anew() -> None:
    outcomes = iter([TraceError("no place"), GOOD])

    def measure() -> Fidelity:
        outcome = next(outcomes)
        if isinstance(outcome, TraceError):
            raise outcome
        return outcome

    one = attach(trace(fidelity=None), Rerun(measure))
    with pytest.raises(TraceError, match="no place"):
        _ = one.fidelity
    assert one.fidelity is GOOD


def test_a_trace_put_together_without_a_fidelity_says_so() -> None:
    with pytest.raises(TraceError, match=r"pass Trace\(…, fidelity=…\)"):
        _ = trace(fidelity=None).fidelity


def test_what_stands_behind_a_trace_is_in_neither_its_fields_nor_its_name() -> None:
    one = attach(trace(fidelity=None), Rerun(lambda: GOOD))
    assert [entry.name for entry in fields(one)] == [
        "layers",
        "queries",
        "keys",
        "output",
        "provenance",
        "kept",
        "seen",
        "mixers",
    ]
    assert "Rerun" not in repr(one)


def test_its_size_counts_every_tensor_once() -> None:
    query = torch.randn(HEADS, TARGET, 4)
    mask = masks.causal(TARGET)
    shared = [Layer(attend(query, query, query, mask), str(number), torch.randn(TARGET, 7)) for number in range(3)]
    rows = {"decoder": tokens(TARGET)}
    one = trace(layers={"decoder": tuple(shared)}, queries=rows, keys=rows)
    floats = query.numel() + 3 * TARGET * 7 + TARGET * D_MODEL
    assert one.nbytes == 4 * floats + TARGET * TARGET


def test_its_size_counts_what_was_found_around_its_layers_once_somebody_asked() -> None:
    def complete() -> Mapping[str, tuple[Layer, ...]]:
        return {"decoder": (Layer(bare.attention(0), "0", torch.randn(TARGET, 100)),)}

    bare = attach(one_stream(), Rerun(lambda: GOOD, complete))
    before = bare.nbytes
    assert bare.layer(0).embeddings is not None
    assert bare.nbytes == before + 4 * TARGET * 100


def test_one_stream_alone_stays_the_same_run() -> None:
    asked: list[str] = []

    def complete() -> Mapping[str, tuple[Layer, ...]]:
        asked.append("around")
        return {
            stream: tuple(
                Layer(one.attention, one.label, torch.randn(len(whole.queries[stream]), D_MODEL)) for one in layers
            )
            for stream, layers in whole.layers.items()
        }

    def differentiate(of: tuple[int, int] | None) -> Relevance:
        return Relevance({}, f"of {of}")

    whole = attach(trace(fidelity=None), Rerun(lambda: GOOD, complete, differentiate))
    alone = whole.only("cross")
    assert alone.streams == ("cross",) and alone.attention(0) is whole.attention(0, "cross")
    assert not asked, "nothing runs before somebody asks"
    assert alone.layer(0).embeddings is whole.layer(0, "cross").embeddings is not None
    assert alone.fidelity is GOOD and alone.relevance((1, 2)).of == "of (1, 2)" and asked == ["around"]
    assert alone.only() is alone


def test_a_derived_trace_keeps_what_it_was_not_given_and_says_what_its_fidelity_is_of() -> None:
    whole = attach(one_stream(), Rerun(lambda: GOOD, None, lambda _: Relevance({}, "")))
    renamed = whole.derived(provenance=Provenance("another"))
    assert renamed.layers == whole.layers and renamed.provenance.model == "another" and renamed.differentiable
    other = whole.derived(layers={"decoder": (layer(TARGET, TARGET),)}, before="something else")
    assert other.attention(0) is not whole.attention(0) and other.query_tokens() is whole.query_tokens()
    assert other.fidelity.reference == "itself, before something else" and not other.differentiable
    with pytest.raises(TraceError, match="need a trained model behind the trace"):
        other.relevance()


def test_a_detached_trace_keeps_no_model_alive() -> None:
    held = attach(trace(fidelity=None), Rerun(lambda: GOOD, None, lambda _: Relevance({}, "")))
    free = held.detached()
    assert free.fidelity is GOOD and not free.differentiable and free.layers == held.layers


def test_notes_by_their_name_of_before_are_the_same_and_warn() -> None:
    origin = Provenance("m", "a", notes=("The first of 3 frames was read.",))
    with pytest.warns(DeprecationWarning, match="Provenance.told is called Provenance.notes now"):
        assert origin.told == origin.notes
    assert origin.as_dict()["told"] == origin.notes  # files keep the key that every version reads
