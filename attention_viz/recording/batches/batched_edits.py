"""One text under many changes, in one batch with edits for each row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.edits.edit import Edit, edited
from attention_viz.edits.places import check_places, concerns
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.device import device_of
from attention_viz.inputs.text import InputRow
from attention_viz.protocol.model import Model
from attention_viz.recording.batches.again import run_again
from attention_viz.recording.batches.batch import Batch
from attention_viz.recording.recorder import Call
from attention_viz.recording.tracer import Tracer
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind, by_row

__all__ = ["batch_outputs", "rows_at_once", "try_each"]

# A batch of so many tokens and rows fills the processor, and one of so many numbers doesn't fill the memory.
_TOKENS, _ROWS, _NUMBERS = 512, 24, 20_000_000
# Where one position of the output is enough, most decoders make few numbers, so that more rows fit.
_TOKENS_OF_ONE, _ROWS_OF_ONE, _NUMBERS_OF_ONE = 768, 64, 60_000_000

# How far the row without edits may be from the run that was recorded, relative to its largest number: batches of
# another size add in another order, which changes the last digits.
_ROUNDING = 1e-4


def rows_at_once(before: Trace, only: int | None = None) -> int:
    """Return edited runs per batch, for one output position or all (None)."""
    tokens = len(before.query_tokens(before.streams[0]))
    if only is not None:
        return max(
            1, min(_ROWS_OF_ONE, _TOKENS_OF_ONE // tokens, _NUMBERS_OF_ONE // math.prod(before.output_shape)) - 1
        )
    return max(1, min(_ROWS, _TOKENS // tokens, _NUMBERS // math.prod(before.output_shape)))


def try_each(
    model: Model, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None
) -> list[Float[Tensor, "position width"]]:
    """Return a run's output for each list of edits, in order.

    One batch with an unedited row; unless it matches `before`, one by one. So too encoder-decoders, our own module,
    half precision, and inputs without text.

    Args:
        before: the unedited run; holds a decoder's continuation.
        tries: at most `rows_at_once`.
        only: the wanted position, from 0: one row, less work in most decoders.
    """
    behind(before).check()
    origin = before.provenance
    is_text = origin.text is not None and origin.picture is None
    several = is_text and (len(tries) > 1 or origin.generated > 0)
    outputs = model.run_batch(before, tries, only) if several else None
    if outputs is not None:
        return outputs
    alone = [_alone(model, before, edits) if is_text else run_again(before, edits) for edits in tries]
    return alone if only is None else [one[only : only + 1] for one in alone]


def _alone(model: Model, before: Trace, edits: Sequence[Edit]) -> Tensor:
    origin = before.provenance
    target = origin.target if "cross" in before.streams and not origin.generated else None
    return model.trace(
        origin.text or "",
        origin.second_text,
        target=target,
        edits=edits,
        special_tokens=origin.special_tokens,
        chat=origin.chat,
    ).output


def batch_outputs(
    tracer: Tracer, reading: InputRow, before: Trace, tries: Sequence[Sequence[Edit]], only: int | None = None
) -> list[Tensor] | None:
    """Return each edit list's output from one batch, at `only` or all (None).

    None in half precision, or if the unedited row differs.
    """
    for edits in tries:
        check_places(edits, tracer.anatomy.layers)
    if by_row(before).dtype not in (torch.float32, torch.float64):
        return None
    try:
        outputs = _run_rows(tracer, reading, ((), *tries), only)
    except UnsupportedModel:
        return None
    there = before.output if only is None else by_row(before)[only : only + 1]
    if only is not None:
        outputs = [one[:, only : only + 1] if one.ndim == 3 and one.shape[1] > 1 else one for one in outputs]
    shape = (1 + len(tries), *there.shape)
    found = [one for one in outputs if one.shape == shape and _same(one[0], there)]
    return list(found[0][1:]) if found else None


def _run_rows(tracer: Tracer, reading: InputRow, tries: Sequence[Sequence[Edit]], only: int | None) -> list[Tensor]:
    runner, rows = tracer.runner, len(tries)
    inputs = {name: torch.cat([row] * rows) for name, row in runner.inputs(reading.tensors).items()}
    settings: dict[str, Any] = {"use_cache": False} if "use_cache" in runner.named else {}
    if only is not None and "logits_to_keep" in runner.named:
        settings["logits_to_keep"] = torch.tensor([only], device=device_of(runner.model))
    with runner.hearing(_RowEdits(places=tracer.anatomy.places, rows=rows, tries=tries)):
        result = runner.model(**inputs, **settings)
    returned = result if isinstance(result, tuple) else tuple(result.values())
    return [one for one in returned if isinstance(one, Tensor)]


def _same(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).abs().max() <= _ROUNDING * other.abs().max())


@dataclass(eq=False)
class _RowEdits(Batch):
    tries: Sequence[Sequence[Edit]] = ()

    def changed(self, number: int, call: Call, output: Tensor) -> Tensor:
        """Apply each row's edits to one call's result."""
        place = self.places[number]
        for row, edits in enumerate(self.tries):
            here = [edit for edit in edits if concerns(edit, place)]
            if here:
                output[row] = edited(here, place, call.of_row(row).attention).output
        return output
