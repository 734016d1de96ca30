"""Runs several texts in one padded pass and cuts out their traces; ends at the last kept call."""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.text import InputRow
from attention_viz.operation.attention import Attention
from attention_viz.operation.cutting import narrowed
from attention_viz.operation.terms import Term, map_terms
from attention_viz.recording.as_written import refuse_autocast
from attention_viz.recording.batches.batch import Batch
from attention_viz.recording.call_rows import of_row
from attention_viz.recording.recorder import Call, RunEnded, whole_output
from attention_viz.recording.references.exact import refuse_nan_in, terms_of
from attention_viz.recording.tracer import TokenAxes, Tracer
from attention_viz.trace.kept import layers_in_words
from attention_viz.trace.layers import Layer
from attention_viz.trace.provenance import Fidelity, Provenance
from attention_viz.trace.trace import Trace


def traces_together(
    tracer: Tracer,
    readings: Sequence[InputRow],
    provenances: Sequence[Provenance],
    keep: frozenset[int] | None = None,
    filling: int = 0,
) -> list[Trace]:
    """Return each text's trace from one pass, without output or rerun; `keep` has call numbers, None for all."""
    lengths = [len(one.tokens) for one in readings]
    if tracer.anatomy.axes or tracer.anatomy.has_spans:
        raise UnsupportedModel(f"{tracer.name} adds positions to its texts, so they are traced one by one")
    given = tracer.runner.inputs(_filled(readings, filling))
    rows = ({name: one[row : row + 1] for name, one in given.items()} for row in range(len(readings)))
    refusals = [tracer.anatomy.words.refusal(tracer.runner, one, tracer.anatomy) for one in rows]
    calls = _calls_together(tracer, given, len(readings), keep)
    (stream,) = tracer.anatomy.layers
    cut = _Cut({})
    found = list[Trace]()
    numbers = sorted({number for _, number in tracer.anatomy.mixer_places})
    mixing = [f"{layers_in_words(numbers)}, without a softmax"] if numbers else []
    for row, (reading, length, provenance) in enumerate(zip(readings, lengths, provenances, strict=True)):
        layers = tuple(
            Layer(cut.of(call, row, length), str(tracer.anatomy.numbers[number])) for number, call in calls.items()
        )
        refuse_nan_in(tracer.runner, (one for layer in layers for one in terms_of(layer.attention)))
        axes = TokenAxes.of_one(stream, reading.tokens)
        kept = tracer.anatomy.kept(tuple(calls))
        nothing = Fidelity(None, None, 0.0, "nothing: it is one of several in a batch")
        provenance = provenance.leaving_out(mixing)
        found.append(Trace({stream: layers}, axes.queries, axes.keys, torch.zeros(0, 0), provenance, nothing, kept))
    for refusal in filter(None, refusals):
        raise refusal
    return found


def _calls_together(
    tracer: Tracer, given: Mapping[str, Tensor], rows: int, keep: frozenset[int] | None
) -> dict[int, Call]:
    """Return a batch's calls by number, with the batch axis; `keep` has call numbers, None for all."""
    runner, places = tracer.runner, tracer.anatomy.places
    # Layers without a softmax are counted after the others, and can't be cut out of a batch.
    last = max((number for number in range(len(places)) if keep is None or number in keep), default=-1)
    if last < 0:
        raise UnsupportedModel(f"{tracer.name} has no softmax attention in these layers; trace the texts one by one")
    kept = dict[int, Call]()

    def keep_call(number: int, call: Call) -> Tensor:
        if keep is None or number in keep:
            kept[number] = call
        if number == last:
            raise RunEnded
        return whole_output(call.attention)

    batch = Batch(places=places, rows=rows, compute_rows=keep_call)
    refuse_autocast(tracer.name, runner.model)
    with contextlib.suppress(RunEnded), runner.hearing(batch):
        _ = runner.model(**given, **_without_output(runner.named))
    if batch.heard != last + 1:
        raise UnsupportedModel(f"{tracer.name} computes a batch differently from its rows one by one")
    return kept


def _without_output(named: Collection[str]) -> dict[str, object]:
    """Return settings against a KV cache and all logits but the last."""
    settings = {"use_cache": False, "logits_to_keep": 1}
    return {name: value for name, value in settings.items() if name in named}


def _filled(readings: Sequence[InputRow], filling: int) -> dict[str, Tensor]:
    """Pad all texts' tensors at the end, where the mask has 0."""
    longest = max(len(one.tokens) for one in readings)
    found = dict[str, Tensor]()
    for name in readings[0].tensors:
        with_what = filling if name == "input_ids" else 0
        rows = torch.full((len(readings), longest), with_what)
        for row, reading in zip(rows, readings, strict=True):
            row[: reading.tensors[name].shape[1]] = reading.tensors[name][0]
        found[name] = rows
    return found


@dataclass(eq=False)
class _Cut:
    """Cuts one text out of a batch; caches by mask, row and length whether nothing is blocked."""

    open: dict[object, bool]

    def of(self, call: Call, row: int, length: int) -> Attention:
        """Return one row's call without padding."""
        allowed, counts = call.attention.allowed, {"query": length, "key": length}
        mask = None if allowed is None else (allowed.data_ptr(), allowed.shape, allowed.stride(), row, length)

        def cut(term: Term, value: Any) -> Any:
            blocks_nothing = term.name == "allowed" and self.open.get(mask, False)
            return None if blocks_nothing else narrowed(term, of_row(term, value, row), counts)

        found = map_terms(call.attention, cut)
        if found.allowed is None or mask in self.open:
            return found
        self.open[mask] = bool(found.allowed.all())
        return replace(found, allowed=None) if self.open[mask] else found
