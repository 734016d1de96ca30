"""One head's steps from two vectors to its output, for the pipeline.

Numbers are float32; `arrays` in the header has each matrix's offset and shape. A short text has every row, a long one
the chosen row and its lanes' keys.
"""

from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.explorer.axes import PackedAxes, generated_by
from attention_viz.explorer.packet import Packet
from attention_viz.operation.shapes import side_by_side
from attention_viz.steps.head import OpenHead
from attention_viz.steps.mixer_rows import reached, stages_of
from attention_viz.steps.mixer_steps import mixer_steps_of
from attention_viz.steps.mixing import MixerHead
from attention_viz.steps.pair import LETTERS
from attention_viz.steps.steps import steps_of

# A text of so many keys has a lane for each; of a longer one the heaviest have one, and one is for all others.
LANES, HEAVIEST = 25, 12
# Vectors as wide as the model are shown in at most so many parts.
STRIP = 96
# Up to so many numbers of all rows are sent at once: a quarter of a megabyte.
MOST_NUMBERS = 60_000

# What is sent of a row, by the names of the steps; each as wide as there are keys.
_ROWS = ("scores", "scaled", "softcapped", "biased")
# The same of a layer without a softmax: its weights, and most stages with their factors.
_MIXED_ROWS = 8


def pack_pipeline(opened: OpenHead | MixerHead, query: int, key: int) -> bytes:
    """Pack a head or channel at a pair; equal ones and rows give equal bytes."""
    if isinstance(opened, MixerHead):
        return _pack_mixer(opened, query, key)
    call = opened.attention
    keys, queries = call.shape[-1], rows_shown(opened, query)
    whole = len(queries) == call.shape[0]
    part = opened if whole else replace(opened, queries=slice(query, query + 1))
    shown = list(range(keys)) if whole else shown_keys(part.weights[0], key)
    arrays = _arrays(part, queries, shown)
    if not whole:
        others = torch.ones(keys, dtype=torch.bool)
        others[shown] = False
        arrays["rest"] = part.weights[:, others].float() @ call.value[others].float()
    header = _header(opened) | {"whole": whole, "queries": queries, "keys": shown, "rest": rest_id(opened)}
    return packed(header, arrays)


def rows_shown(opened: OpenHead | MixerHead, query: int) -> list[int]:
    """Return the rows that are sent: a short text's all, else the chosen one."""
    call = opened.mixer if isinstance(opened, MixerHead) else opened.attention
    count, keys = call.shape
    each = _MIXED_ROWS if isinstance(opened, MixerHead) else len(_ROWS) + len(opened.entry.bias_parts)
    wide = each * keys + 4 * STRIP + opened.heads * call.value.shape[-1]
    return list(range(count)) if count * wide <= MOST_NUMBERS else [query]


def rest_id(opened: OpenHead | MixerHead) -> str:
    """Return the name of a layer's rest: equal for all of its heads, another for another model, text or edit."""
    trace = opened.trace
    told = blake2b(repr((trace.provenance.model, trace.provenance.edits)).encode(), digest_size=16)
    own = opened.entry.mixer.value if isinstance(opened, MixerHead) else opened.entry.attention.query
    # The output depends on everything that a layer reads, such as an encoder's text.
    for numbers in (own, trace.output):
        told.update(numbers.detach().float().cpu().contiguous().numpy().tobytes())
    return f"{opened.stream} {opened.layer} {told.hexdigest()}"


def shown_keys(weights: Float[Tensor, " key"], key: int) -> list[int]:
    """Return lanes' keys: a short text's all, else heaviest and chosen."""
    if len(weights) <= LANES:
        return list(range(len(weights)))
    return sorted({*weights.float().topk(HEAVIEST).indices.tolist(), key})


def _header(opened: OpenHead) -> dict[str, Any]:
    trace, call = opened.trace, opened.attention
    entering = {side: opened.entering(side) for side in ("query", "key")}
    axes = PackedAxes(generated_by(trace))
    stream = opened.stream
    query_axis, key_axis = (axes.add(one(stream), stream) for one in (trace.query_tokens, trace.key_tokens))
    return {
        "stream": opened.stream,
        "layer": opened.layer,
        "head": opened.head,
        "heads": opened.heads,
        "d_k": opened.d_k,
        "d_v": call.value.shape[-1],
        "d_model": opened.d_model,
        "known": sorted(opened.projections),
        "widths": {side: None if rows is None else rows.shape[-1] for side, rows in entering.items()},
        "scale": call.scale,
        "softcap": call.softcap,
        "parts": list(opened.bias_parts),
        "sink": None if call.sinks is None else call.sinks.item(),
        "steps": [[name, step.label] for name, step in steps_of(opened).items()],
        "axes": axes.entries,
        "axis": {"query": query_axis, "key": key_axis},
    }


def _arrays(opened: OpenHead, queries: list[int], keys: list[int]) -> dict[str, Tensor | None]:
    """Return arrays by name; None if unknown or the model lacks the step."""
    call, entry = opened.attention, opened.entry
    steps = steps_of(opened)
    all_heads = entry.attention if len(queries) == entry.attention.shape[-2] else entry.attention.rows(queries)
    entering = opened.entering("key")
    joined, adds = None if entry.joined is None else entry.joined[queries], opened.adds
    return {
        "query": call.query,
        "key": call.key[keys],
        "value": call.value[keys],
        **{name: steps[name].function(opened) if name in steps else None for name in _ROWS},
        **{f"part {at}": part for at, part in enumerate(opened.bias_parts.values())},
        "masked": call.masked,
        "margins": _margins(opened),
        "weights": opened.weights,
        "output": call.output,
        "heads": side_by_side(all_heads.output),
        "embeddings": None if entry.embeddings is None else pooled(entry.embeddings[queries]),
        "entering": None if entering is None else pooled(entering[keys]),
        "joined": None if joined is None else pooled(joined),
        "adds": None if joined is None or adds is None else pooled(adds),
        "adding": None if joined is None or adds is None else _adding(adds, joined),
    }


def _margins(opened: OpenHead) -> Tensor | None:
    """Return how far above the cut each key is that an indexer left out (so below 0); NaN for all others."""
    picking = opened.picking
    if picking is None:
        return None
    margins = picking.margins.float().nan_to_num(nan=-torch.inf, neginf=-torch.inf)
    return margins.masked_fill(~picking.left_out, torch.nan)


def _pack_mixer(opened: MixerHead, query: int, key: int) -> bytes:
    """Pack a head or channel of a layer without a softmax; `masked` has its row's first stage."""
    call, queries = opened.mixer, rows_shown(opened, query)
    keys, whole = call.shape[-1], len(queries) == call.shape[-2]
    weights, stages = call.rows(queries).weights, stages_of(opened, queries)
    shown = list(range(keys)) if whole else shown_keys(weights[0].abs(), key)
    arrays: dict[str, Tensor | None] = {
        "query": call.query.expand(call.shape[-2], -1)[queries] if opened.has_vectors else None,
        "key": call.key.expand(keys, -1)[shown] if opened.has_vectors else None,
        "value": call.value[shown],
        "masked": stages[0].values.masked_fill(~reached(opened, queries), -torch.inf),
        "weights": weights,
        "output": call.output[queries],
        "heads": side_by_side(opened.entry.mixer.rows(queries).output),
        **{f"stage {one.name}": one.values for one in stages},
        **{f"factor {one.name}": one.factor for one in stages},
    }
    if not whole:
        others = torch.ones(keys, dtype=torch.bool)
        others[shown] = False
        arrays["rest"] = weights[:, others].float() @ call.value[others].float()
    letters = LETTERS.get(call.kind, {})
    mixer = {
        "kind": call.kind,
        "per": call.per,
        "causal": call.is_causal,
        "convolved": opened.entry.convolved,
        "letters": [letters.get("query", "q"), letters.get("key", "k")],
        "stages": [[one.name, one.label, one.says, one.sign] for one in stages],
    }
    header = _mixer_header(opened) | {"mixer": mixer, "whole": whole, "queries": queries, "keys": shown}
    return packed(header, arrays)


def _mixer_header(opened: MixerHead) -> dict[str, Any]:
    trace, call = opened.trace, opened.mixer
    axes = PackedAxes(generated_by(trace))
    stream = opened.stream
    query_axis, key_axis = (axes.add(one(stream), stream) for one in (trace.query_tokens, trace.key_tokens))
    return {
        "stream": opened.stream,
        "layer": opened.layer,
        "head": opened.head,
        "heads": opened.heads,
        "d_k": call.query.shape[-1] if opened.has_vectors else 0,
        "d_v": call.value.shape[-1],
        "d_model": None,
        "known": [],
        "widths": {"query": None, "key": None},
        "scale": call.scale,
        "softcap": None,
        "parts": [],
        "sink": None,
        "steps": [[name, step.label] for name, step in mixer_steps_of(opened).items()],
        "axes": axes.entries,
        "axis": {"query": query_axis, "key": key_axis},
        "rest": rest_id(opened),
    }


def _adding(adds: Float[Tensor, "row d_model"], joined: Float[Tensor, "row d_model"]) -> Float[Tensor, "row 3"]:
    """Return both lengths by row, and the head's part of the joined vector: 1 for all and bias."""
    one, whole = adds.double(), joined.double()
    along = (one * whole).sum(-1) / whole.square().sum(-1).clamp_min(torch.finfo(torch.float64).tiny)
    return torch.stack([one.norm(dim=-1), whole.norm(dim=-1), along], dim=-1)


def pooled(rows: Float[Tensor, "row width"]) -> Float[Tensor, "row part"]:
    """Return at most `STRIP` numbers per row, each its part's furthest from 0."""
    width = rows.shape[-1]
    starts = [part * width // STRIP for part in range(STRIP)] if width > STRIP else list(range(width))
    numbers = rows.detach().float().cpu().numpy()
    high, low = (together.reduceat(numbers, starts, axis=1) for together in (numpy.maximum, numpy.minimum))
    return torch.from_numpy(numpy.where(high >= -low, high, low))


def packed(header: dict[str, Any], arrays: dict[str, Tensor | None]) -> bytes:
    """Pack a header and arrays; the header has each one's place, rows and columns."""
    packet, entries = Packet(), dict[str, list[Any]]()
    for name, tensor in arrays.items():
        if tensor is not None:
            numbers = tensor.detach().float().cpu().numpy()
            entries[name] = [packet.add_numbers(numbers), *numbers.shape]
    return packet.pack(header | {"arrays": entries})
