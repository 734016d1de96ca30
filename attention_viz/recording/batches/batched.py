"""Several texts in one pass: each row filled up to the longest, and each text's trace cut out of what was heard.

The pass ends at the last attention that is kept: nobody asks for what the model would make of it.
"""

import contextlib
from collections.abc import Collection, Sequence
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
from attention_viz.recording.batches.batch import Batch, whole_output
from attention_viz.recording.recorder import Call, RunEnded, of_row
from attention_viz.recording.tracer import TokenAxes, Tracer
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
    """The trace of each text from one pass over all of them; a trace has no output, and nothing behind it.

    Args:
        keep: which calls are kept; all by default.
    """
    lengths = [len(one.tokens) for one in readings]
    calls = calls_together(tracer, readings, keep, filling)
    (stream,) = tracer.anatomy.layers
    cut = _Cut({})
    found = list[Trace]()
    for row, (reading, length, provenance) in enumerate(zip(readings, lengths, provenances, strict=True)):
        layers = tuple(
            Layer(cut.of(call, row, length), str(tracer.anatomy.numbers[number])) for number, call in calls.items()
        )
        axes = TokenAxes.of_one(stream, reading.tokens)
        kept = tracer.anatomy.kept(tuple(calls))
        nothing = Fidelity(None, None, 0.0, "nothing: it is one of several in a batch")
        found.append(Trace({stream: layers}, axes.queries, axes.keys, torch.zeros(0, 0), provenance, nothing, kept))
    return found


def calls_together(
    tracer: Tracer, readings: Sequence[InputRow], keep: frozenset[int] | None = None, filling: int = 0
) -> dict[int, Call]:
    """What one pass over several texts asks of attention, by the number of the call, with the batch axis.

    Args:
        keep: which calls are kept; all by default.
    """
    runner, places = tracer.runner, tracer.anatomy.places
    last, kept = len(places) - 1 if keep is None else max(keep), dict[int, Call]()

    def keep_call(number: int, call: Call) -> Tensor:
        if keep is None or number in keep:
            kept[number] = call
        if number == last:
            raise RunEnded
        return whole_output(call.attention)

    batch = Batch(places=places, rows=len(readings), compute_rows=keep_call)
    refuse_autocast(tracer.name, runner.model)
    given = runner.inputs(_filled(readings, filling))
    with contextlib.suppress(RunEnded), runner.hearing(batch):
        _ = runner.model(**given, **_without_output(runner.named))
    if batch.heard != last + 1:
        raise UnsupportedModel(f"{tracer.name} doesn't run a batch as it runs its rows")
    return kept


def _without_output(named: Collection[str]) -> dict[str, object]:
    """What has a model leave out what nobody asks for here: its cache, and the logits of all tokens but the last."""
    settings = {"use_cache": False, "logits_to_keep": 1}
    return {name: value for name, value in settings.items() if name in named}


def _filled(readings: Sequence[InputRow], filling: int) -> dict[str, Tensor]:
    """The tensors of all texts, each row filled up at its end, where the mask has 0."""
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
    """Cuts one text out of a batch's calls; layers share their masks, so what is known of one is kept.

    Attributes:
        open: by mask, row and length, whether nothing is blocked in that row's part of it.
    """

    open: dict[object, bool]

    def of(self, call: Call, row: int, length: int) -> Attention:
        """The call of one row alone, without what fills it up."""
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
