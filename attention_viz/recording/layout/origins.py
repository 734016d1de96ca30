"""Finds the origin of each query and key: all of the input, or one word of it, is changed, and rows move.

In a second set of runs each position keeps to itself, so that rows move by their own part of the input alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.inputs.media.beside import marks_in
from attention_viz.recording.layout.axes import PROMPT, SEEN, TEXT
from attention_viz.recording.outputs.breaking import SEEN as MEDIA
from attention_viz.recording.outputs.breaking import naming_trial
from attention_viz.recording.recorder import Call, Recorder

if TYPE_CHECKING:
    from attention_viz.recording.runner import Runner

_NAMES = {"query": 0, "key": 1}


@dataclass(frozen=True)
class Origins:
    """Which rows move by the text, by what else is read, and by points or boxes."""

    text: Tensor
    seen: Tensor
    prompt: Tensor

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.text)

    @property
    def still(self) -> Tensor:
        """The rows that nothing moves."""
        return ~(self.text | self.seen | self.prompt)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that move a row."""
        return tuple(kind for kind in (TEXT, SEEN, PROMPT) if bool(getattr(self, kind).any()))


@dataclass(frozen=True)
class Side:
    """A call's queries or keys.

    Attributes:
        found: what moves its rows in the model as it is.
        alone: what moves them if each position keeps to itself.
    """

    found: Origins
    alone: Origins

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.found)


class KeepApart(Recorder):
    """Records a run that gives each position its own query, and so nothing of the others."""

    def _output(self, call: Call) -> Tensor:
        query, width = call.attention.query, call.attention.value.shape[-1]
        if query.ndim != 4:
            return super()._output(call)
        return query.repeat(1, 1, 1, -(-width // query.shape[-1]))[..., :width]


def calls_apart(runner: "Runner", inputs: Mapping[str, Tensor]) -> tuple[Call, ...]:
    """Return the calls of a run that keeps each position to itself."""
    recorder, name = KeepApart(), type(runner.model).__name__
    problem = f"can't find the positions that {name} adds: with its positions kept apart"
    with naming_trial(runner, problem), runner.hearing(recorder):
        runner.model(**(runner.settings | dict(inputs)))
    return recorder.calls()


def sides_of(runner: "Runner", inputs: Mapping[str, Tensor], calls: Sequence[Call]) -> list[tuple[Side, Side]]:
    """Return the origins of each call's queries and keys.

    Args:
        calls: those of these inputs.
    """
    changed = _changed(runner, inputs, lambda found: runner.record(found).calls)
    alone = calls_apart(runner, inputs)
    moved = {kind: calls_apart(runner, found) for kind, (found, _) in changed.items()}
    check_counts(runner, calls, alone, *moved.values(), *(after for _, after in changed.values()))
    after = {kind: one for kind, (_, one) in changed.items()}
    return [
        (
            Side(_origins(calls[number], number, after, "query"), _origins(alone[number], number, moved, "query")),
            Side(_origins(calls[number], number, after, "key"), _origins(alone[number], number, moved, "key")),
        )
        for number in range(len(calls))
    ]


def check_counts(runner: "Runner", calls: Sequence[Call], *others: Sequence[Call]) -> None:
    """Refuse runs of other inputs that make another number of calls."""
    if any(len(one) != len(calls) for one in others):
        raise UnsupportedModel(f"{type(runner.model).__name__} makes other attention calls for another input")


def words_of_rows(runner: "Runner", inputs: Mapping[str, Tensor], name: str) -> list[tuple[Tensor, Tensor]]:
    """Return the word that moves each query and key of each call most, from 1, its position kept apart; 0 for none.

    Words are changed by the bits of their number, each bit and its opposite, so that few runs tell all of them.

    Args:
        name: the input that has their ids.
    """
    ids, other = inputs[name], other_text(runner, {name: inputs[name]})[name]
    before = calls_apart(runner, inputs)
    numbers = torch.arange(1, ids.shape[1] + 1, device=ids.device)
    found = [[torch.zeros(_rows(call, side), dtype=torch.long) for side in _NAMES] for call in before]
    for bit in range(ids.shape[1].bit_length()):
        has = (numbers >> bit & 1).bool()
        runs = [calls_apart(runner, {**inputs, name: torch.where(which, other, ids)}) for which in (has, ~has)]
        for call, start in enumerate(before):
            for side, at in _NAMES.items():
                ones, zeros = (distances(start, run[call], side) for run in runs)
                found[call][at] += (ones > zeros).long() << bit
    return [(one[0], one[1]) for one in found]


def other_text(runner: "Runner", inputs: Mapping[str, Tensor], *, repeated: bool = True) -> dict[str, Tensor]:
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


def _changed(
    runner: "Runner", inputs: Mapping[str, Tensor], run: Callable[[Mapping[str, Tensor]], Sequence[Call]]
) -> dict[str, tuple[Mapping[str, Tensor], Sequence[Call]]]:
    """Return by kind the inputs with all of that kind changed, and their calls."""
    prompts = [name for name in inputs if name.startswith("input_") and name not in MEDIA] if _has_media(inputs) else []
    prompts = [name for name in prompts if inputs[name].is_floating_point()]
    seen = [name for name, tensor in inputs.items() if tensor.is_floating_point() and name not in prompts]
    found = {TEXT: _after_other_text(runner, inputs, run)}
    for kind, names in ((SEEN, seen), (PROMPT, prompts)):
        other = _other_numbers(inputs, names)
        found[kind] = (other, run(other) if names else found[TEXT][1][:0])
    return {kind: one for kind, one in found.items() if kind == TEXT or one[1]}


def _has_media(inputs: Mapping[str, Tensor]) -> bool:
    return bool(MEDIA & inputs.keys())


def _after_other_text(
    runner: "Runner", inputs: Mapping[str, Tensor], run: Callable[[Mapping[str, Tensor]], Sequence[Call]]
) -> tuple[Mapping[str, Tensor], Sequence[Call]]:
    """Return the inputs with other ids at every position, placeholders as they are, and their calls."""
    other = other_text(runner, inputs)
    try:
        return other, run(other)
    except AttentionVizError:
        raise
    except Exception:  # a placeholder that its configuration doesn't name; those repeat
        other = other_text(runner, inputs, repeated=False)
        return other, run(other)


def _other_numbers(inputs: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    """Return the inputs with other numbers in the tensors of these names."""
    chance, found = torch.Generator().manual_seed(0), dict(inputs)
    for name in names:
        tensor = inputs[name]
        found[name] = tensor + (1 + tensor.abs()) * torch.randn(tensor.shape, generator=chance).to(tensor)
    return found


def _origins(before: Call, number: int, after: Mapping[str, Sequence[Call]], side: str) -> Origins:
    none = torch.zeros(_rows(before, side), dtype=torch.bool)
    moves = {kind: _moved(before, calls[number], side) for kind, calls in after.items()}
    return Origins(*(moves.get(kind, none) for kind in (TEXT, SEEN, PROMPT)))


def _moved(before: Call, after: Call, side: str) -> Tensor:
    """Return which rows differ, bit by bit: what reads the input may move by little."""
    one, other = _both(before, after, side)
    return (other != one).any(dim=-1).any(dim=0).cpu()


def distances(before: Call, after: Call, side: str) -> Tensor:
    """Return how far each query or key moved between two runs, squared."""
    one, other = _both(before, after, side)
    return (other.double() - one.double()).square().sum(dim=(0, 2)).cpu()


def _both(before: Call, after: Call, side: str) -> tuple[Tensor, Tensor]:
    one, other = (getattr(call.attention, side) for call in (before, after))
    if one.shape != other.shape:
        raise UnsupportedModel(
            "it attends over another number of positions for another input of the same size, such as patches of bytes; "
            "use a model whose positions are its tokens"
        )
    return one, other


def _rows(call: Call, side: str) -> int:
    return getattr(call.attention, side).shape[-2]
