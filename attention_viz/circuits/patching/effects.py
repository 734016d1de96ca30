"""Measure each head's effect on a number."""

from collections.abc import Callable, Generator, Sequence
from operator import index
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from attention_viz.analysis.signed import has_channels
from attention_viz.circuits.asked import Direction, Logit, Probability
from attention_viz.circuits.opened import check_model, is_output_of
from attention_viz.circuits.patching.first_order import numbers_of
from attention_viz.circuits.patching.pairing import settled
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.errors import ShapeError, TraceError
from attention_viz.protocol.needing import need_trained
from attention_viz.recording.batches.batched_edits import rows_at_once, try_each
from attention_viz.recording.weights.unchanged import changed
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["effects", "mean_effects"]

# Stream, layer and head; None for all channels of a layer without a softmax.
Place = tuple[str, int, int | None]


def effects(
    model: "AttentionModel",
    text: str | Trace,
    of: Logit | Probability | Direction,
    *,
    heads: Literal["all"] | Sequence[tuple[int, int | None]] = "all",
    to: Literal["mean", "zero"] = "mean",
    stream: str | None = None,
    report: Callable[[int, int], object] = lambda done, of: None,
) -> "pandas.DataFrame":
    """Ablate each head by itself, to its mean or 0 at every position, and measure a number's change.

    These are total effects: everything after the head is computed again, including patterns and norms. The mean
    (default) removes the head's variation within this text and keeps its average output. It is taken over this text's
    positions that aren't padding, not over other texts. Heads run in batches without gradients, with one unchanged row.
    They run one by one if that row differs from a single run, for encoder–decoders, and in half precision.

    Heads of layers without a softmax, of the stream "mixer", always become 0. If such a layer has a matrix per channel,
    all its channels become 0 together: one row, without a head.

    Source: Wang, Variengien, Conmy, Shlegeris & Steinhardt 2023, "Interpretability in the Wild", section 2.2, where the
    mean is over other texts; to 0: Olsson et al. 2022, "In-context Learning and Induction Heads".

    Args:
        model: from `load` or `wrap`.
        text: a text, or this model's trace of one, without edits; a trace from a file works.
        of: a `Logit`, a `Probability` or, for a model without an unembedding, a `Direction`.
        heads: (layer, head) pairs, or "all".
        to: "mean", the head's mean over this text's positions, or "zero".
        stream: the heads' stream: "encoder", "decoder", "cross" or "mixer"; None for all.
        report: called after each batch with the number of finished heads and of all heads; if it raises, the work
            stops.

    Returns:
        Index (layer, head), or (stream, layer, head) if the model has several streams; largest effect first, whichever
        its sign. Columns effect, the number without the head minus the number with it (negative if the head helps), and
        number, the number without it. `attrs` holds number (with all heads), of, to (the mean's positions) and held
        (the kind of effect).

    Raises:
        ShapeError: `heads` is empty or names missing heads; `to` isn't "mean" or "zero"; `of` is a `Score`; or its
            position or token doesn't exist.
        TraceError: the trace is another model's, is edited, or differs from the model's output now.
        UnusableText: the trace is of ids, without a text to run again; or the token's text isn't exactly one token.
        UnsupportedModel: the model is one of our own modules, has no unembedding for a logit or probability, or has
            attention sinks that take a share of each row (for the mean).
    """
    if to not in ("mean", "zero"):
        raise ShapeError(f'unknown to={to!r}; choose "mean" or "zero"')
    need_trained(model)
    before = model.trace(text) if isinstance(text, str) else _checked(model, text)
    asked, places = settled(model, before, of), _places(before, heads, stream)
    padding = before.query_tokens(before.streams[-1]).padding
    number = float(numbers_of(before.output[None], asked, padding)[0])
    found: list[float] = []
    report(0, len(places))
    for outputs in _runs(model, before, places, to, asked.position):
        found += numbers_of(outputs, asked, padding, limited=asked.position is not None).tolist()
        report(len(found), len(places))
    return _table(places, found, number, several=len(before.streams) > 1, of=str(of), to=_phrase(to, before))


def mean_effects(tables: "Sequence[pandas.DataFrame]") -> "pandas.DataFrame":
    """Average texts' effects; add the population standard deviation as spread. One table stays unchanged."""
    import pandas

    if not tables or any(set(one.index) != set(tables[0].index) for one in tables):
        raise ShapeError("the mean of effects needs at least one table, all of the same heads")
    if len(tables) == 1:
        return tables[0]
    names, places = ["effect", "number"], tables[0].index
    numbers = torch.stack([torch.tensor(one.reindex(places)[names].to_numpy(copy=True)) for one in tables])
    mean, spread = numbers.mean(dim=0).numpy(), numbers.std(dim=0, correction=0).numpy()
    endings = {"": mean, "_spread": spread}
    columns = {name + ending: one[:, at] for at, name in enumerate(names) for ending, one in endings.items()}
    table = pandas.DataFrame(columns, index=places).sort_values("effect", key=abs, ascending=False, kind="stable")
    table.attrs.update({**tables[0].attrs, "number": sum(one.attrs["number"] for one in tables) / len(tables)})
    return table


def _runs(
    model: "AttentionModel", before: Trace, places: Sequence[Place], to: Literal["mean", "zero"], only: int | None
) -> Generator[Tensor]:
    size, several = rows_at_once(before, only), len(before.streams) > 1
    for start in range(0, len(places), size):
        batch = places[start : start + size]
        tries = [
            (Ablate(layer, head, "zero" if whose in before.mixers else to, whose if several else None),)
            for whose, layer, head in batch
        ]
        yield torch.stack(try_each(model, before, tries, only))


def _table(
    places: Sequence[Place], found: Sequence[float], number: float, *, several: bool, **phrase: str
) -> "pandas.DataFrame":
    import pandas

    streams, layers, heads = zip(*places, strict=True)
    numbers = pandas.array(heads, dtype="Int64") if None in heads else heads
    named = pandas.MultiIndex.from_arrays([streams, layers, numbers], names=["stream", "layer", "head"])
    named = named if several else named.droplevel("stream")
    table = pandas.DataFrame({"effect": [one - number for one in found], "number": found}, index=named)
    table = table.sort_values("effect", key=abs, ascending=False, kind="stable")
    table.attrs.update(number=number, **phrase, held="total effect; everything after the head is computed again")
    return table


def _phrase(to: str, trace: Trace) -> str:
    if to == "zero":
        return "zero"
    mixers = "; zero in layers without a softmax" if trace.mixers else ""
    return f"the head's mean over the positions of this text that aren't padding{mixers}"


def _checked(model: "AttentionModel", trace: Trace) -> Trace:
    check_model(model, trace)
    if trace.provenance.edits:
        raise TraceError(
            f"can't ablate heads in an edited run ({', '.join(trace.provenance.edits)}); trace the text without edits"
        )
    (again,) = try_each(model, trace, [()])
    if not is_output_of(again, trace):
        raise changed(model.name)
    return trace


def _places(trace: Trace, heads: str | Sequence[tuple[int, int | None]], stream: str | None) -> list[Place]:
    import pandas

    known = stream is None or stream in trace.mixers
    streams = (trace.streams if stream is None else (stream,)) if known else (trace.stream(stream),)
    if isinstance(heads, str):
        if heads != "all":
            raise ShapeError(f'heads must be (layer, head) pairs or "all"; got {heads!r}')
        return [
            (one, layer, head)
            for one in streams
            for layer in trace.layer_numbers(one)
            for head in _heads_of(trace, layer, one)
        ]
    # A pandas index has numpy numbers, and NA where a row has no head.
    wanted = [
        (index(layer), None if head is None or head is pandas.NA else index(head))
        for layer, head in dict.fromkeys(heads)
    ]
    places = [(_stream_of(trace, layer, streams), layer, head) for layer, head in wanted]
    if not places:
        raise ShapeError("heads is empty; name at least one as (layer, head)")
    return places


def _heads_of(trace: Trace, layer: int, stream: str) -> Sequence[int | None]:
    return [None] if has_channels(trace, stream, layer) else range(trace.head_count(layer, stream))


def _stream_of(trace: Trace, layer: int, streams: Sequence[str]) -> str:
    having = [one for one in streams if layer in trace.layer_numbers(one)] if trace.mixers else streams
    if len(having) > 1:
        raise ShapeError(f"these heads need a stream; choose {', '.join(having)}")
    return having[0] if having else streams[0]
