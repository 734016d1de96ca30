"""Split a query's scores by word and place where no head came before, and rerun them with another word."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from attention_viz.circuits.asked import Score
from attention_viz.circuits.opened import OpenedRun, cut_off, open_behind, run_behind
from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.operation.numerics import REORDERED
from attention_viz.operation.shapes import of_head, shared_heads
from attention_viz.recording.batches.batch import Batch
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.recorder import Call, RunEnded, whole_output
from attention_viz.trace.kept import LayerNumber
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

__all__ = ["SplitScores", "exchanged", "split_scores"]

# What a part of a query or key says; a sentence embedding that is the same everywhere counts as a bias.
PARTS = ("word", "place", "sentence", "other", "bias")
_KINDS = {"embedding": "word", "position": "place", "bias": "bias", "constant": "bias"}
# So many tokens run at once.
_TOKENS = 8192


@dataclass(frozen=True, eq=False)
class SplitScores:
    """One query's scores in one head, key by key; only keys that it may attend to.

    Attributes:
        keys: their positions.
        parts: the names of `PARTS` that a query or key has.
        pairs: (query part, key part, key); both parts' sum is `scores`.
        scores: (key,), query · key × scale.
        beside: (key,), the distance-dependent term that the model adds to a score; None if it adds none.
        together: (key,), the scores if query and key had the same place, for positions that turn both; else None.
        shared: (key,), how much of the key's bias part is a sentence embedding.
        places: how positions act: "embedded", "turned", "added", "none" or "unknown".
    """

    keys: tuple[int, ...]
    parts: tuple[str, ...]
    pairs: Tensor
    scores: Tensor
    beside: Tensor | None
    together: Tensor | None
    shared: Tensor
    places: str


def split_scores(model: "AttentionModel", trace: Trace, of: Score) -> SplitScores:
    """Split the scores of `of`'s query with every key; parts are exact, with norms held fixed.

    Raises:
        UnsupportedModel: a head wrote the query or a key, or the parts miss a score.
    """
    run, opened = open_behind(model, trace)
    stream = trace.attention_stream(of.stream)
    number = run.anatomy.call(stream, LayerNumber(of.layer))
    call, one = trace.attention(of.layer, stream), opened.call(number, run.name)
    with opened.asking(), run.runner.door:
        queries = _parts(run, opened, one.query[of.head, of.query])
        keys = _parts(run, opened, of_head(one.key, of.head, len(one.query)))
    allowed = torch.ones(call.shape[-1], dtype=torch.bool)
    if call.allowed is not None:
        allowed = call.allowed.expand(call.shape)[of.head, of.query].cpu()
    open_keys = allowed.nonzero()[:, 0]
    parts = tuple(name for name in PARTS if name in queries or name in keys)
    width = one.query.shape[-1]
    empty = torch.zeros(width, dtype=torch.float64)
    mine = torch.stack([queries.get(name, empty) for name in parts])
    theirs = torch.stack([keys.get(name, empty.expand(len(allowed), width))[open_keys] for name in parts])
    pairs = torch.einsum("qd,pkd->qpk", mine, theirs) * one.scale
    whole = mine.sum(dim=0)
    shared = (keys["shared"][open_keys] @ whole) * one.scale if "shared" in keys else torch.zeros(len(open_keys))
    scores = _scores(one.query.detach(), one.key.detach(), of, one.scale)[open_keys]
    _check(run, scores, pairs)
    beside = None
    if call.bias is not None:
        beside = call.bias.expand(call.shape)[of.head, of.query].detach().double().cpu()[open_keys]
    together = None
    if "place" in parts:
        places = "embedded"
    elif beside is not None:
        places = "added"
    else:
        places, turned = _turned(run, number, stream, trace, of, one.scale)
        together = None if turned is None else turned[open_keys]
    return SplitScores(tuple(open_keys.tolist()), parts, pairs, scores, beside, together, shared, places)


def _check(run: ModelRun, scores: Tensor, pairs: Tensor) -> None:
    missed = float((scores - pairs.sum(dim=(0, 1))).abs().max())
    if missed > REORDERED * max(float(pairs.abs().max()), 1e-6):
        raise UnsupportedModel(f"can't split the scores of {run.name}: the parts miss {missed:.3g}")


def _scores(query: Tensor, key: Tensor, of: Score, scale: float) -> Tensor:
    keys = of_head(key, of.head, len(query))
    return (keys.double() @ query[of.head, of.query].double()).cpu() * scale


def _parts(run: ModelRun, opened: OpenedRun, found: Tensor) -> dict[str, Tensor]:
    """Return each part's share of a linear result, in its shape.

    The slope along a direction is linear in it, so the slope of slope · leaf is the leaf's own share.
    """
    if not found.requires_grad:
        raise cut_off(run.name, "this query or key", found, opened)
    along = torch.zeros_like(found).requires_grad_()
    leaves = [leaf.tensor for leaf in opened.leaves]
    slopes = torch.autograd.grad(found, leaves, grad_outputs=along, create_graph=True, allow_unused=True)
    parts: dict[str, Tensor] = {}
    for leaf, slope in zip(opened.leaves, cast("Sequence[Tensor | None]", slopes), strict=True):
        if slope is None or not slope.requires_grad:
            continue
        if leaf.call is not None or leaf.mixer is not None:
            raise UnsupportedModel("can't split by word and place: heads of earlier layers wrote this query or key")
        (share,) = torch.autograd.grad((slope * leaf.tensor.detach()).sum(), [along], retain_graph=True)
        name = _name(leaf.kind, leaf.tensor)
        share = share.detach().double().cpu()
        if name == "shared":
            parts["bias"] = parts.get("bias", 0) + share
        parts[name] = parts.get(name, 0) + share
    return parts


def _name(kind: str, tensor: Tensor) -> str:
    """Return a leaf's part; "shared" for a position table's row that all positions have."""
    if kind != "position":
        return _KINDS.get(kind, "other")
    rows = tensor.detach().flatten(0, -2)
    several = len(rows.unique(dim=0))
    if several == len(rows):
        return "place"
    return "shared" if several == 1 else "sentence"


def _turned(
    run: ModelRun, number: int, stream: str, trace: Trace, of: Score, scale: float
) -> tuple[str, Tensor | None]:
    """Return how positions act, and the scores with all tokens at one position if they turn queries and keys."""
    name = _ids(run, stream, trace)
    if name is None or "position_ids" not in run.runner.named:
        return "unknown", None
    before = trace.attention(of.layer, stream)
    inputs = {**run.inputs, "position_ids": torch.zeros_like(run.inputs[name])}
    try:
        call = _heard(run, inputs, 1, number).of_row(0).attention
    except AttentionVizError:
        return "unknown", None
    for one, other in ((call.query, before.query), (call.key, before.key)):
        if not torch.allclose(one.norm(dim=-1).cpu(), other.norm(dim=-1).cpu(), rtol=1e-3, atol=1e-5):
            return "unknown", None
    found = _scores(call.query.detach(), call.key.detach(), of, scale)
    same = torch.allclose(found, _scores(before.query, before.key, of, scale), rtol=1e-4, atol=1e-4)
    return ("none", None) if same else ("turned", found)


def exchanged(model: "AttentionModel", trace: Trace, of: Score, tokens: Sequence[int]) -> list[tuple[float, float]]:
    """Return the score and weight of `of` with each token at the key's position, run by the model.

    The whole text runs, up to this call, in batches. The unchanged text runs along and must give the trace's score.

    Raises:
        UnsupportedModel: the key isn't a token of a text, or the model computes a batch differently.
    """
    run = run_behind(model, trace)
    stream = trace.attention_stream(of.stream)
    name = _ids(run, stream, trace)
    if name is None:
        raise UnsupportedModel(f"can't exchange a key of {run.name}: it isn't a token of a text")
    number = run.anatomy.call(stream, LayerNumber(of.layer))
    before = trace.attention(of.layer, stream)
    there = float(_scores(before.query, before.key, of, 1.0)[of.key])
    own, most = run.inputs[name], max(1, _TOKENS // run.inputs[name].shape[1] - 1)
    found: list[tuple[float, float]] = []
    for start in range(0, len(tokens), most):
        some = list(tokens[start : start + most])
        ids = own.repeat(1 + len(some), 1)
        ids[1:, of.key] = torch.tensor(some, dtype=own.dtype, device=own.device)
        inputs = {key: torch.cat([one] * len(ids)) for key, one in run.inputs.items()} | {name: ids}
        call = _heard(run, inputs, len(ids), number)
        rows = [call.of_row(row).attention.head(of.head).rows([of.query]) for row in range(len(ids))]
        keys = [shared_heads(row.key, row.query)[of.key] for row in rows]
        scores = [float(row.query[0].double() @ key.double()) for row, key in zip(rows, keys, strict=True)]
        if abs(scores[0] - there) > REORDERED * max(map(abs, (there, *scores))):
            raise UnsupportedModel(f"{run.name} computes a batch differently from its rows one by one")
        found += [
            (score * float(row.scale), float(row.weights[0, of.key]))
            for score, row in zip(scores[1:], rows[1:], strict=True)
        ]
    return found


def _ids(run: ModelRun, stream: str, trace: Trace) -> str | None:
    """Return the input that holds a stream's tokens; None if it has no text of its own."""
    numbers = list(trace.key_tokens(stream).numbers)
    for name in ("input_ids", "decoder_input_ids"):
        if name in run.inputs and run.inputs[name].tolist() == [numbers]:
            return name
    return None


def _heard(run: ModelRun, inputs: Mapping[str, Tensor], rows: int, number: int) -> Call:
    """Return one call of a batch, and end the run there."""
    found: list[Call] = []

    def compute(at: int, call: Call) -> Tensor:
        if at == number:
            found.append(call)
            raise RunEnded
        return whole_output(call.attention)

    batch = Batch(places=run.anatomy.places, rows=rows, compute_rows=compute)
    with contextlib.suppress(RunEnded), run.runner.hearing(batch):
        _ = run.runner.model(**inputs, **run.runner.settings)
    if not found:
        raise UnsupportedModel(f"{run.name} made no attention call {number} for this input")
    return found[0]
