"""Finds each attention call's stream: its text's, a tower's, or one of slots, spans or a canvas."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.media.beside import marks_in
from attention_viz.recording.interception.outside import ElsewhereError
from attention_viz.recording.layout.axes import TEXT, Axes, Axis
from attention_viz.recording.layout.merged import canvas_streams, merges
from attention_viz.recording.layout.slots import WORDS, SlotStreams, slot_streams
from attention_viz.recording.outputs.breaking import SEEN
from attention_viz.recording.recorder import Call
from attention_viz.recording.runner import Pass, Runner
from attention_viz.recording.towers import (
    check_heads,
    check_shape,
    check_turns,
    in_tower,
    looks_back,
    paths_of,
    streams_by_tower,
)


def streams_of(
    runner: Runner,
    inputs: Mapping[str, Tensor],
    recorded: Pass,
    family: str,
    lengths: tuple[int, int],
    spans: tuple[str, ...] | None,
) -> tuple[tuple[str, ...], Mapping[str, Axes]]:
    """Return each call's stream, and the axes of streams with slots."""
    calls = recorded.calls
    if spans is not None:
        return spans, {}
    if SEEN & {*inputs}:
        if runner.switch.plan.sites:
            check_heads(runner.model, calls)
        else:
            check_turns(recorded.parted)
        slots = _slots(runner, inputs, recorded)
        return streams_by_tower(runner.model, calls, inputs, slots.names), slots.axes
    if not calls:
        return (), {}
    sparse = {site.reads: site.axes for site in runner.switch.plan.sparse if site.axes is not None}
    if runner.answers:
        if (canvas := canvas_streams(runner, inputs, recorded)) is not None:
            return canvas, {}
        if merges(runner, inputs, recorded):
            return _merged(family, calls, *lengths), {}
        return _pair(family, calls, lengths, sparse)
    own = sparse.get("input_ids")
    slots = _slots(runner, inputs, recorded) if own is None else SlotStreams(("",) * len(calls), {WORDS: own})
    return _alone(family, calls, lengths[0], slots)


def _slots(runner: Runner, inputs: Mapping[str, Tensor], recorded: Pass) -> SlotStreams:
    """Find streams with slots, if a call's shape or name says that there may be some."""
    paths, shapes = paths_of(runner.model, recorded.calls), [call.attention.shape[1:] for call in recorded.calls]
    seen, ids = bool(SEEN & {*inputs}), inputs.get("input_ids")
    writes = "decoder_input_ids" in inputs and ids is None
    crossing = any(queries != keys for queries, keys in shapes) and not writes
    more = not seen and ids is not None and any(keys != ids.shape[1] for _, keys in shapes)
    asking = ids is None and not writes and any("decoder" in path.split(".") for path in paths)
    if not (crossing or more or asking or (seen and _may_be_words(runner, inputs, paths, shapes))):
        return SlotStreams(("",) * len(paths), {})
    return slot_streams(runner, inputs, recorded, paths)


def _may_be_words(
    runner: Runner, inputs: Mapping[str, Tensor], paths: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> bool:
    """Return whether an image or audio may have as many positions as the text has words, by the modules' names."""
    if "input_ids" not in inputs:
        return False
    words = inputs["input_ids"].shape[1]
    towers = [shape for path, shape in zip(paths, shapes, strict=True) if in_tower(path)]
    if towers:
        return any(words in shape for shape in towers)
    return (words, words) in shapes and not marks_in(runner.model, inputs["input_ids"])


def _alone(
    family: str, calls: Sequence[Call], count: int, slots: SlotStreams
) -> tuple[tuple[str, ...], Mapping[str, Axes]]:
    """Return "decoder" for all calls between words if none attends ahead, else "encoder"; and the streams of slots."""
    words = [call for call, name in zip(calls, slots.names, strict=True) if name in ("", WORDS)]
    added = slots.axes.get(WORDS)
    rows, columns = (0, 0) if added is None else (added.queries.slots_of(count), added.keys.slots_of(count))
    for call in words:
        check_shape(family, call, ((count + rows, count + columns),))
    closed = [looks_back(call) for call in words]
    if any(closed) and not all(closed):
        raise UnsupportedModel(f"{family} attends ahead in only some layers; use a model that does so in all or none")
    own = "decoder" if closed and all(closed) else "encoder"
    axes = {own if name == WORDS else name: one for name, one in slots.axes.items()}
    return tuple(own if name in ("", WORDS) else name for name in slots.names), axes


def _pair(
    family: str, calls: Sequence[Call], lengths: tuple[int, int], sparse: Mapping[str, Axes]
) -> tuple[tuple[str, ...], Mapping[str, Axes]]:
    """Return an encoder–decoder's streams, by the lengths of queries and keys, and the axes of those with slots."""
    count, target = lengths
    none = Axes(Axis(rest=TEXT), Axis(rest=TEXT))
    reading, writing = sparse.get("input_ids", none), sparse.get("decoder_input_ids", none)
    axes = {"encoder": reading, "decoder": writing, "cross": Axes(writing.queries, none.keys)}
    kinds = {
        axes["encoder"].sizes(count, count): "encoder",
        axes["decoder"].sizes(target, target): "decoder",
        axes["cross"].sizes(target, count): "cross",
    }
    for call in calls:
        check_shape(family, call, tuple(kinds))
    streams = tuple(kinds[call.attention.shape[1], call.attention.shape[2]] for call in calls)
    missing = [stream for stream in ("encoder", "decoder", "cross") if stream not in streams]
    if missing:
        raise ElsewhereError(
            f"no {' or '.join(missing)} attention was found in the encoder–decoder {family}; use one with all three, "
            "such as by building its decoder with add_cross_attention=True"
        )
    if not all(looks_back(call) for call, stream in zip(calls, streams, strict=True) if stream == "decoder"):
        raise UnsupportedModel(f"the decoder of {family} attends ahead; use a causal decoder")
    return streams, {stream: one for stream, one in axes.items() if one != none}


def _merged(family: str, calls: Sequence[Call], count: int, target: int) -> tuple[str, ...]:
    """Return the streams of an encoder–decoder whose decoder attends to both texts at once."""
    kinds = {(count, count): "encoder", (target, target + count): "decoder"}
    for call in calls:
        check_shape(family, call, tuple(kinds))
    return tuple(kinds[call.attention.shape[1], call.attention.shape[2]] for call in calls)
