"""Finds the positions that a model adds to its input, by changing all of the input.

Rows that no change moves in a module's first call were learned: latents, object queries, virtual tokens.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.inputs.media.beside import marks_in
from attention_viz.recording.layout.axes import SEEN, TEXT, Axes, Axis
from attention_viz.recording.recorder import Call
from attention_viz.recording.towers import in_tower
from attention_viz.trace.kind import Unit

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass, Runner

# Stands for the stream of a text's words, whichever that is.
WORDS = "words"


@dataclass(frozen=True)
class SlotStreams:
    """The streams with slots: one name per call, "" for ordinary calls, and their axes."""

    names: tuple[str, ...]
    axes: Mapping[str, Axes]


@dataclass(frozen=True)
class _Side:
    """Which rows of one side of a call move by the text, and which by what else is read."""

    text: Tensor
    seen: Tensor

    def __len__(self) -> int:
        return len(self.text)

    @property
    def still(self) -> Tensor:
        """The rows that nothing moves."""
        return ~(self.text | self.seen)

    def read_by(self, unit: Unit, slots: int) -> Axis:
        """Return the axis of keys that slots read; a class token that nothing moved isn't a slot."""
        found = self.axis(unit)
        if found is not None and found.rest and found.slots in (0, slots):
            return found
        return Axis(unit, rest=TEXT if bool(self.text.any()) and not bool(self.seen.any()) else SEEN)

    def axis(self, unit: Unit) -> Axis | None:
        """Return the axis, if its slots are together at one end."""
        still = self.still.tolist()
        rest = SEEN if bool(self.seen.any()) else TEXT if bool(self.text.any()) else ""
        if not rest:
            return Axis(unit, before=len(still))
        if sum(one != other for one, other in pairwise(still)) > 1:
            return None
        count = sum(still)
        return Axis(unit, before=count if still[0] else 0, after=0 if still[0] else count, rest=rest)


def slot_streams(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass", paths: Sequence[str]) -> SlotStreams:
    """Find the streams whose queries or keys the model adds.

    Args:
        paths: each call's module name.
    """
    measured = _measured(runner, inputs, recorded)
    patterns = [re.sub(r"\d+", "*", path) for path in paths]
    first = {pattern: number for number, pattern in reversed(list(enumerate(patterns)))}
    found, length = dict[str, tuple[str, Axes]](), _text_length(inputs)
    reads_more = any(tensor.is_floating_point() for tensor in inputs.values())
    for pattern, number in sorted(first.items(), key=lambda one: one[1]):
        queries, keys = measured[number]
        # Queries of a target; and a tower's own positions, which nothing moves if its weights are near 0.
        writes = "decoder_input_ids" in inputs and any("decoder" in part for part in pattern.split("."))
        # LXMERT's modules attend from words to patches, and from patches to words.
        calls = (call for call, own in zip(recorded.calls, patterns, strict=True) if own == pattern)
        shapes = {call.attention.shape[1:] for call in calls}
        if writes or len(shapes) > 1 or (in_tower(pattern) and len(queries) == len(keys)):
            continue
        unit = _unit(runner.model.config, pattern)
        own = _continued(pattern, queries, keys, found, length) or _named(queries, keys, unit, reads_more=reads_more)
        if own is None and unit is Unit.OBJECT and len(queries) == len(keys) == runner.model.config.num_queries:
            # Queries that a model chooses from what it reads.
            own = "slots", Axes(Axis(unit, before=len(queries)), Axis(unit, before=len(queries)))
        if own is None and not any(bool(side.seen.any()) for side in (queries, keys)):
            own = _virtual(queries, keys, length)
        if own is not None:
            found[pattern] = own
    for pattern, (_, axes) in found.items():
        _check_order(runner, inputs, recorded, first[pattern], axes)
    names = tuple(found[pattern][0] if pattern in found else "" for pattern in patterns)
    axes = dict[str, Axes]()
    for stream, own in found.values():
        if axes.setdefault(stream, own) != own:
            raise UnsupportedModel(
                f"{type(runner.model).__name__} has several sets of learned queries in its {stream}, of "
                f"{axes[stream].queries.slots} and {own.queries.slots}; use a model with one set"
            )
    return SlotStreams(names, axes)


def _check_order(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass", number: int, axes: Axes) -> None:
    """Refuse words beside slots in another order than the text's, as changing the first and the last shows."""
    name = next((one for one in ("qformer_input_ids", "input_ids") if one in inputs), None)
    sides = {"query": axes.queries, "key": axes.keys}
    for side, axis in sides.items():
        if axis.rest != TEXT or name is None:
            continue
        before: Tensor = getattr(recorded.calls[number].attention, side)
        count = before.shape[-2] - axis.slots
        words = range(inputs[name].shape[1])
        if count != len(words):
            continue  # these words have numbers for names
        for at in (words[0], words[-1]):
            other = inputs[name].clone()
            other[0, at] = _other_text(runner, {name: inputs[name]})[name][0, at]
            after: Tensor = getattr(runner.record({**inputs, name: other}).calls[number].attention, side)
            moved = int((after - before).square().sum(dim=(0, 2)).argmax())
            if moved != axis.before + at:
                raise UnsupportedModel(
                    f"can't match positions to words: {type(runner.model).__name__} has word {at} of its text at "
                    f"position {moved}, not {axis.before + at}"
                )


def _unit(config: Any, pattern: str) -> Unit:
    asks = "decoder" in pattern.split(".") and isinstance(getattr(config, "num_queries", None), int)
    return Unit.OBJECT if asks else Unit.LATENT


def _virtual(queries: _Side, keys: _Side, length: int) -> tuple[str, Axes] | None:
    """Return the words' stream, if virtual tokens are among its keys, and maybe among its queries."""
    rows, columns = queries.axis(Unit.VIRTUAL), keys.axis(Unit.VIRTUAL)
    if rows is None or columns is None or not columns.slots or len(keys) - columns.slots != length:
        return None
    return (WORDS, Axes(rows, columns)) if len(queries) - rows.slots == length else None


def _named(queries: _Side, keys: _Side, unit: Unit, *, reads_more: bool) -> tuple[str, Axes] | None:
    """Return a pattern's stream if its first call's queries are slots, alone or before words."""
    if bool(queries.still.all()):
        own = Axis(unit, before=len(queries))
        if bool(keys.still.all()) and len(keys) == len(queries):
            return "slots", Axes(own, own)
        return "pooling", Axes(own, keys.read_by(unit, len(queries)))
    own = queries.axis(unit)
    mixed = own is not None and own.slots and own.rest == TEXT and keys.axis(unit) == own
    if own is not None and mixed and reads_more:
        return "slots", Axes(own, own)
    seen = keys.axis(unit)
    if bool(queries.text.all()) and not bool(keys.text.any()) and seen is not None and seen.rest == SEEN:
        return "cross", Axes(Axis(rest=TEXT), seen)
    return None


def _continued(
    pattern: str, queries: _Side, keys: _Side, found: Mapping[str, tuple[str, Axes]], length: int
) -> tuple[str, Axes] | None:
    """Return the stream of a pattern whose queries are the slots of one before it, which have read something since."""
    for other, (_, axes) in reversed(list(found.items())):
        if not _beside(pattern, other):
            continue
        slots, unit = axes.queries.slots, axes.queries.unit
        own = Axis(unit, before=slots)
        if len(queries) == len(keys) == slots != length:
            return "slots", Axes(own, own)
        if len(queries) == slots != len(keys):
            return "pooling", Axes(own, keys.read_by(unit, slots))
        if bool(queries.still.all()) and len(keys) == slots and bool((~keys.still).all()) and unit is Unit.LATENT:
            return "readout", Axes(Axis(Unit.OUTPUT, before=len(queries)), own)
    return None


def _beside(one: str, other: str) -> bool:
    """Return whether two modules are in one part of a model, below its outermost ones."""
    first, second = one.split("."), other.split(".")
    common = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), 0)
    return common > 0 and first[:common] != ["model"]


def _text_length(inputs: Mapping[str, Tensor]) -> int:
    return next((tensor.shape[1] for name, tensor in inputs.items() if name == "input_ids"), 0)


def _measured(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass") -> list[tuple[_Side, _Side]]:
    """Return what moves each call's queries and keys."""
    after = {TEXT: _after_other_text(runner, inputs), SEEN: runner.record(_other_seen(inputs)).calls}
    if any(len(calls) != len(recorded.calls) for calls in after.values()):
        raise UnsupportedModel(f"{type(runner.model).__name__} makes other attention calls for another input")
    return [
        (_side(call, number, after, "query"), _side(call, number, after, "key"))
        for number, call in enumerate(recorded.calls)
    ]


def _side(call: Call, number: int, after: Mapping[str, Sequence[Call]], name: str) -> _Side:
    before: Tensor = getattr(call.attention, name)
    none = torch.zeros(before.shape[-2], dtype=torch.bool)
    moves = {kind: _moved(before, getattr(calls[number].attention, name)) for kind, calls in after.items()}
    return _Side(moves.get(TEXT, none), moves.get(SEEN, none))


def _moved(before: Tensor, after: Tensor) -> Tensor:
    """Return which rows of (head, row, width) differ."""
    if before.shape != after.shape:
        raise UnsupportedModel("it attends over other rows for another input")
    # Bit by bit: what reads the input may move by little.
    return (after != before).any(dim=-1).any(dim=0).cpu()


def _after_other_text(runner: "Runner", inputs: Mapping[str, Tensor]) -> Sequence[Call]:
    """Return the calls with other ids at every position, placeholders as they are."""
    try:
        return runner.record(_other_text(runner, inputs)).calls
    except AttentionVizError:
        raise
    except Exception:  # a placeholder that its configuration doesn't name; those repeat
        return runner.record(_other_text(runner, inputs, repeated=False)).calls


def _other_text(runner: "Runner", inputs: Mapping[str, Tensor], *, repeated: bool = True) -> dict[str, Tensor]:
    """Return the inputs with other ids, except for placeholders, or for all ids that occur several times."""
    names = [name for name in inputs if name.endswith("input_ids") and not name.startswith("decoder")]
    found = dict(inputs)
    for name in names:
        ids = inputs[name].clone()
        marks = set(marks_in(runner.model, ids)) if name == "input_ids" else set[int]()
        if not repeated:
            row: list[int] = ids[0].tolist()
            marks |= {at for at, one in enumerate(row) if row.count(one) > 1}
        pool = sorted({one for at, one in enumerate(ids[0].tolist()) if at not in marks})
        following = (
            dict(zip(pool, [*pool[1:], *pool[:1]] if len(pool) > 1 else [pool[0] + 1], strict=True)) if pool else {}
        )
        for at, one in enumerate(ids[0].tolist()):
            if at not in marks:
                ids[0, at] = following[one]
        found[name] = ids
    return found


def _other_seen(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the inputs with other numbers in every image or sound."""
    chance = torch.Generator().manual_seed(0)
    floating = {
        name: tensor + (1 + tensor.abs()) * torch.randn(tensor.shape, generator=chance).to(tensor)
        for name, tensor in inputs.items()
        if tensor.is_floating_point()
    }
    return {**inputs, **floating}
