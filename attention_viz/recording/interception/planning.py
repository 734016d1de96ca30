"""Makes and tests the plan for a model with attention in its own code."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.edits.kinds.masks import Block
from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.batches.batch import Batch
from attention_viz.recording.copied import copied
from attention_viz.recording.differences import Difference
from attention_viz.recording.interception.bias_parts import named_parts
from attention_viz.recording.interception.plan import NO_PLAN, InterceptionPlan
from attention_viz.recording.interception.proof import prove
from attention_viz.recording.interface import OURS
from attention_viz.recording.outputs.breaking import SEEN
from attention_viz.recording.outputs.returned import outputs_of
from attention_viz.recording.recorder import Call, Recorder, heard_by, whole_output
from attention_viz.recording.runner import Runner
from attention_viz.recording.sparse.proving import SparseKinds, check_rest, check_sparse_edits
from attention_viz.recording.twin import Twin

# Tokens: several of the longest blocks that transformers' families use by default, which are of 64.
_LONG = 256


def planned_by(runner: Runner, inputs: Mapping[str, Tensor], limit: int | None = None) -> InterceptionPlan:
    """Return a model's plan, proved in a float32 twin (or the model's float64); no sites if nothing was heard."""
    if any(getattr(runner.model, name, None) is not None for name in ("_orig_mod", "_compiled_call_impl")):
        raise UnsupportedModel("it is compiled and can't be followed; pass the model before torch.compile")
    twin = runner.twin()
    if runner.model.dtype not in (torch.float32, torch.float64):
        # A twin shares its numbers with the model, so those of another precision are a copy's.
        twin = replace(twin, model=copied(twin.model, {}).float())

    plan, refusal, longer = NO_PLAN, None, inputs
    # First, since what takes all memory here is raised, and not tried again.
    try:
        plan = _proved(twin, inputs)
    except UnsupportedModel as error:
        refusal = error
    sparse = SparseKinds.of(twin, inputs)
    if sparse or not (plan.sites or SEEN & {*inputs}):
        length = max((one.shape[1] for one in inputs.values() if one.ndim == 2), default=0)
        longer = _longest(twin, inputs, max(length, min(_LONG, limit or _LONG)))
        # A short text may hide it, as Reformer's within a single block.
        sparse = sparse or SparseKinds.of(twin, longer)
    if sparse:
        dense = twin
        try:
            with sparse.naming():
                sites = sparse.sites(twin, longer, (inputs, _padded(inputs)))
                twin = replace(twin, plan=InterceptionPlan(sparse=sites))
                plan = replace(_proved(twin, inputs), sparse=sites)
                check_rest(twin, inputs)
        except UnsupportedModel as error:
            twin, plan = dense, _of_slots(dense, inputs, error)
    elif refusal is not None:
        raise refusal
    try:
        return plan.merged(_proved(twin, _padded(inputs)))
    except Exception:  # a model that can't be run with padding is refused by name when it is given some
        return plan


def _of_slots(twin: Twin, inputs: Mapping[str, Tensor], refusal: UnsupportedModel) -> InterceptionPlan:
    """Return the plan of a model whose keys aren't the text's, since they are latents; else raise the refusal."""
    try:
        plan = _proved(twin, inputs)
    except UnsupportedModel:
        raise refusal from None
    if not plan.sites:
        raise refusal
    return replace(plan, unless=str(refusal))


def _proved(twin: Twin, inputs: Mapping[str, Tensor]) -> InterceptionPlan:
    def run() -> object:
        with heard_by(Recorder()):
            return twin.run(inputs, OURS)

    proved = prove(twin.model, run, in_rows=bool(SEEN & {*inputs}))
    return replace(proved, keeps_own=twin.plan.keeps_own)


def _longest(twin: Twin, inputs: Mapping[str, Tensor], count: int) -> Mapping[str, Tensor]:
    """Return the inputs repeated to a number of tokens, or to half of it and so on, until the model runs them."""
    while count > max(one.shape[1] for one in inputs.values() if one.ndim > 1):
        longer = _repeated(inputs, count)
        with contextlib.suppress(Exception):  # a decoder may have places for fewer tokens than an encoder
            _ = twin.run(longer, "eager")
            return longer
        count //= 2
    return inputs


def _repeated(inputs: Mapping[str, Tensor], count: int) -> dict[str, Tensor]:
    flat = {name: tensor for name, tensor in inputs.items() if tensor.ndim == 2}
    return {**inputs, **{name: one.repeat(1, -(-count // one.shape[1]))[:, :count] for name, one in flat.items()}}


def _padded(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mask the first two tokens, and an image's lower half, as padding, if there are masks."""
    found = dict(inputs)
    for name in ("attention_mask", "decoder_attention_mask"):
        if name in found:
            found[name] = found[name].clone()
            found[name][:, :2] = 0
    if "pixel_mask" in found:
        found["pixel_mask"] = found["pixel_mask"].clone()
        found["pixel_mask"][:, found["pixel_mask"].shape[1] // 2 :] = 0
    return found


def is_unused(
    runner: Runner, inputs: Mapping[str, Tensor], places: Sequence[tuple[str, int]], heads: Sequence[int]
) -> bool:
    """Return whether a text's output doesn't depend on pooled images, as with SigLIP's tower in language models."""
    pooling = [(layer, count) for (stream, layer), count in zip(places, heads, strict=True) if stream == "pooling"]
    if not pooling or "input_ids" not in inputs:
        return False
    edits = [Ablate(layer, head, stream="pooling") for layer, count in pooling for head in range(count)]
    return torch.equal(runner.record(inputs, edits, places).output[:], runner.record(inputs).output[:])


def check_planned(runner: Runner, inputs: Mapping[str, Tensor], places: Sequence[tuple[str, int]]) -> Runner:
    """Test a plan by an edit and a batch; return the runner with named parts."""
    if runner.switch.plan.sparse:
        check_sparse_edits(runner, inputs, places)
        return runner
    _check_edits(runner, inputs, places)
    if runner.windows.active:  # a batch of them is refused by name
        return runner
    other = {name: one.flip(-1) if name.endswith("input_ids") else one for name, one in inputs.items()}
    _check_batch(runner, (inputs, other), places)
    return replace(runner, switch=replace(runner.switch, plan=named_parts(runner, inputs, places, other)))


def _check_edits(runner: Runner, inputs: Mapping[str, Tensor], places: Sequence[tuple[str, int]]) -> None:
    """Block one cell per stream, by an edit and in the model's logits: both must agree."""
    twin, before = runner.twin(), runner.record(inputs)
    for stream in dict.fromkeys(stream for stream, _ in places):
        place, layer = next((number, layer) for number, (found, layer) in enumerate(places) if found == stream)
        queries, keys = before.calls[place].attention.shape[-2:]
        cell, order = (queries - 1, min(1, keys - 1)), before.calls[place].order
        own = (..., *cell)
        if order is not None:
            slots = order.places.shape[1]
            own = (-1, ..., slots - 1, min(1, slots - 1))
            cell = (int(order.places[-1, -1]), int(order.places[-1, own[-1]]))
        ours = runner.record(inputs, (Block(*cell, layer=layer, stream=stream),), places).output
        theirs, _ = twin.run_followed(inputs, lambda _heard: None, _blocking(place, own))
        found = Difference()
        found.add(ours, theirs)
        if found.relative > max(BOUNDS.get(dtype, 0.0) for dtype in (ours.dtype, runner.model.dtype)):
            raise UnsupportedModel(
                f"blocking a cell in its {stream}'s first layer changes the output differently from blocking it in its "
                f"own logits, by {found.relative:.1e} relative"
            )


def _check_batch(runner: Runner, rows: Sequence[Mapping[str, Tensor]], places: Sequence[tuple[str, int]]) -> None:
    """Run two texts in one batch: weights and outputs must equal single runs.

    One row allows any order of axes; two expose models with heads before rows.
    """
    alone = [runner.record(row) for row in rows]
    together = {name: torch.cat([row[name] for row in rows]) for name in rows[0]}
    found, heard = Difference(), list[Tensor]()

    def keep_weights(_number: int, call: Call) -> Tensor:
        heard.append(call.attention.weights)
        return whole_output(call.attention)

    batch = Batch(places=places, rows=len(rows), compute_rows=keep_weights)
    settings = {"use_cache": False} if "use_cache" in runner.named else {}
    try:
        with runner.hearing(batch):
            outputs = outputs_of(runner.model(**together, **settings))
    except AttentionVizError:
        raise
    except Exception:
        if runner.run_own(together) is None:
            return  # its own code takes no batch, so that none is ever run
        raise
    for row, one in enumerate(alone):
        found.add(_alone(outputs, row, one.output[:]), one.output[:])
        for weights, call in zip(heard, one.calls, strict=True):
            found.add(weights[row], call.attention.weights)
    if found.relative > max(BOUNDS.get(dtype, 0.0) for dtype in (outputs.dtype, runner.model.dtype)):
        raise UnsupportedModel(f"two texts in a batch differ from each alone by {found.relative:.1e}")


def _alone(outputs: Tensor, row: int, single: Tensor) -> Tensor:
    """Return a row's output; of a batch of texts and images, each fits each, and alone only its own."""
    own = outputs[row]
    return own[..., row : row + 1] if own.shape[-1] == len(outputs) and single.shape[-1] == 1 else own


def _blocking(place: int, cell: tuple[Any, ...]) -> Callable[[int, Tensor, Callable[[Tensor], Tensor]], Tensor]:
    def soften(number: int, logits: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        if number == place:
            logits = logits.clone()
            logits[cell] = -torch.inf
        return compute(logits)

    return soften
