"""Cut a decoder's trace to its first tokens."""

import functools
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import Term, map_terms
from attention_viz.trace.late_output import first_rows
from attention_viz.trace.layers import Layer
from attention_viz.trace.rerun import Along, Relevance
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import attach, behind, by_row

__all__ = ["beginning"]

_QUERIES = ("query", "key")


def beginning(trace: Trace, count: int) -> Trace:
    """Return the trace of the first tokens alone; without looking ahead, no number changes or is recomputed.

    Provenance is the whole text's, except how many tokens the model chose. Gradients are of the token likeliest after
    the first ones, from a run of the whole text.
    """
    tokens = trace.query_tokens(trace.streams[0])
    if not 1 <= count <= len(tokens):
        raise TraceError(f"the first {count} tokens were asked for; the trace has {len(tokens)}")
    if trace.streams != ("decoder",) or any(_looks_ahead(layer.attention, count) for layer in trace.layers["decoder"]):
        raise TraceError(
            f"the first {count} tokens were asked for, and in this trace tokens look at others behind them"
        )
    if count == len(tokens):
        return trace
    cut, output = {"decoder": _first(tokens, count)}, by_row(trace)
    found = trace.derived(
        layers={"decoder": tuple(_layer(layer, count) for layer in trace.layers["decoder"])},
        queries=cut,
        keys=cut,
        output=first_rows(output, count) if len(output) == len(tokens) else output,
        provenance=replace(trace.provenance, generated=max(0, trace.provenance.generated - (len(tokens) - count))),
        before=f"the first {count} tokens were looked at alone",
    )
    return _behind(found, trace, count)


def _behind(found: Trace, trace: Trace, count: int) -> Trace:
    run = behind(trace)

    def differentiate(of: tuple[int, int] | Along | None) -> Relevance:
        if isinstance(of, Along):
            raise TraceError("a direction was asked for of the first tokens of a trace; ask the whole trace")
        found_of_all = trace.relevance(of or (count - 1, int(by_row(found)[count - 1].argmax())))
        cut = {name: tuple(one[:, :count, :count] for one in layers) for name, layers in found_of_all.layers.items()}
        return replace(found_of_all, layers=cut)

    def zero(stream: str) -> tuple[Tensor, ...]:
        return tuple(one[:count, :count] for one in trace.value_zeroing(stream))

    by_token = trace.provenance.output == "logits"
    return attach(
        found,
        replace(
            behind(found),
            differentiate=differentiate if trace.differentiable and by_token else None,
            zero=None if run.zero is None else zero,
        ),
    )


def _looks_ahead(call: Attention, count: int) -> bool:
    queries, keys = call.shape[-2:]
    if queries != keys:
        return True
    if count >= keys:
        return False
    if call.allowed is None:
        return True
    allowed = call.allowed.expand(*call.allowed.shape[:-2], queries, keys)
    return bool(allowed[..., :count, count:].any())


def _layer(layer: Layer, count: int) -> Layer:
    call = layer.attention
    around = {name: tensor[..., :count, :] for name, tensor in layer.around.items()}
    return replace(layer, attention=map_terms(call, functools.partial(_term, count, call.shape[-1])), **around)


def _term(count: int, before: int, term: Term, value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    for axis, name in enumerate(reversed(term.axes.names), start=1):
        if name in _QUERIES and value.shape[-axis] == before:
            value = value.narrow(-axis, 0, count)
    return value


def _first(tokens: Tokens, count: int) -> Tokens:
    found = {entry.name: getattr(tokens, entry.name) for entry in fields(tokens) if entry.init}
    return replace(tokens, **{name: value[:count] for name, value in found.items() if isinstance(value, tuple)})
