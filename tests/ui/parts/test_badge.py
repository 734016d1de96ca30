"""The badge's sentence says what was compared, and what it does not say was not."""

import torch

import attention_viz as av
from attention_viz.trace.trace import Fidelity, Trace
from attention_viz.ui.parts.badge import _verdict as verdict
from attention_viz.ui.parts.badge import comparison_words


def compared(rows: int | None) -> str:
    """What is said of a comparison of so many rows."""
    trace = av.scratch("a cat sat")
    fidelity = Fidelity(2e-7, 3e-7, 1e-5, "the same model with another attention", 0.0, rows)
    layers, queries, keys = trace.layers, trace.queries, trace.keys
    return comparison_words(Trace(layers, queries, keys, trace.output, trace.provenance, fidelity))


def test_of_a_short_text_any_weight_was_compared() -> None:
    assert "in the output is 2×10⁻⁷ and in any weight 3×10⁻⁷" in compared(None)


def test_of_a_long_text_it_says_how_many_rows_of_weights_were_compared() -> None:
    assert "and in any weight of these 1,280 rows, in all layers and heads, 3×10⁻⁷" in compared(1280)


def test_two_runs_that_are_equal_have_no_difference() -> None:
    trace = av.scratch("a cat sat")
    equal = Fidelity(0.0, 0.0, 1e-5, "the same model with another attention", 0.0, None)
    same = Trace(trace.layers, trace.queries, trace.keys, trace.output, trace.provenance, equal)
    assert verdict(same, from_file=False, switched=False) == ("green", "Verified: no difference")


def test_a_part_that_is_left_out_is_named() -> None:
    trace = av.scratch("a cat sat")
    origin = trace.provenance.leaving_out(["pooler (by torch's MultiheadAttention)"])
    near = Fidelity(2e-7, 3e-7, 1e-5, "the same model with another attention", 0.0, None)
    one = Trace(trace.layers, trace.queries, trace.keys, trace.output, origin, near)
    assert verdict(one, from_file=False, switched=False) == ("green", "Verified to 3×10⁻⁷; part left out")
    assert "also attends in pooler (by torch's MultiheadAttention), which isn't shown" in comparison_words(one)


def test_weights_that_were_handed_over_are_never_verified() -> None:
    trace = av.Trace.from_weights(torch.eye(3))
    assert "Nothing ran here: these are the given weights" in comparison_words(trace)
    assert verdict(trace, from_file=True, switched=False) == (
        "orange",
        "Not verified: weights passed in",
    )


def test_a_run_that_was_compared_with_nothing_is_not_said_to_have_been_handed_over() -> None:
    trace = av.scratch("a cat sat")
    nothing = Fidelity(None, None, 0.0, "nothing: it is one of several in a batch")
    one = Trace(trace.layers, trace.queries, trace.keys, trace.output, trace.provenance, nothing)
    assert verdict(one, from_file=True, switched=False) == ("orange", "Not verified: nothing was compared")
    assert comparison_words(one) == "This run was compared with nothing: it is one of several in a batch."
