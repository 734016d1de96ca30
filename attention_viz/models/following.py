"""Trace tokens that something else generated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attention_viz.analysis.measured import continues_text
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.inputs.check import checked_mask
from attention_viz.models import texts
from attention_viz.models.continued_beside import follow_beside
from attention_viz.models.media import check_reads_text
from attention_viz.models.parts import ModelParts
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.decoding import Decoding
from attention_viz.trace.kind import InputKind
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import attach, behind


def follow(
    parts: ModelParts,
    ids: Tensor | Sequence[int],
    prompt: int,
    attention_mask: Tensor | None,
    tensors: Mapping[str, Tensor],
) -> Trace:
    """Trace a prompt and what something else generated after it; see `AttentionModel.follow`."""
    if parts.facts.is_encoder_decoder:
        raise UnsupportedModel(
            f"{parts.name} is an encoder–decoder; pass its decoder's ids to trace_ids as decoder_input_ids"
        )
    if why := parts.tracer.anatomy.no_words:
        raise UnsupportedModel(f"{parts.name} can't follow generated tokens, because {why}")
    beside = parts.facts.reads is InputKind.BESIDE and bool(tensors)
    if not beside:
        check_reads_text(parts)
    if tensors and not beside:
        raise UnsupportedModel(f"{parts.name} reads ids alone; leave out {', '.join(tensors)}")
    placed = ("an image", "a video", "audio") if beside else ()
    row = parts.inputs.row(ids, placed=placed)
    count = row.shape[1]
    if not is_whole(prompt) or not 1 <= prompt <= count:
        raise ShapeError(f"prompt must be a number of tokens from 1 to {count}; got {prompt!r}")
    if beside:
        return follow_beside(parts, row, int(prompt), attention_mask, tensors)
    if attention_mask is not None and attention_mask.shape == (1, prompt):
        more = count - attention_mask.shape[1]
        attention_mask = torch.cat([checked_mask(row[:, :prompt], attention_mask), row.new_ones(1, more)], dim=1)
    trace = texts.trace_ids(parts, row, attention_mask)
    if not continues_text(trace):
        streams = " and ".join(parts.facts.streams)
        raise UnsupportedModel(
            f"{parts.name} can't follow generated tokens, because its attention ({streams}) looks ahead; use a decoder"
        )
    made = count - int(prompt)
    decoding = (Decoding("given", tokens=made),) if made else ()
    provenance = replace(trace.provenance, generated=made, decoding=decoding)
    return attach(trace.derived(provenance=provenance), behind(trace))
