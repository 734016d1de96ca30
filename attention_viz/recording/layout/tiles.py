"""Proves that the rows of a batch are an image's tiles or a text's images, and names their positions."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.reach import is_causal
from attention_viz.recording.layout.digits import mixed
from attention_viz.recording.layout.origins import KeepApart
from attention_viz.recording.layout.windows import WindowFinder
from attention_viz.recording.outputs.breaking import SEEN, naming_trial
from attention_viz.recording.recorder import Call, Recorder, RunEnded
from attention_viz.trace.tokens import Region, Tokens

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass, Runner

# The axes of one tile, or of one window of a sound.
_AXES = {"pixel_values": 3, "pixel_values_videos": 3, "input_features": 2, "input_values": 1}
# A row that moves less than this share of the largest move doesn't depend on what was changed.
_STILL = 1e-4
_TERMS = ("query", "key", "value")
# So many numbers stand for a position's query, key or value.
_FEW = 8


@dataclass(eq=False)
class _Terms(Recorder):
    """Keeps a few numbers of calls' queries, keys and values at each position, (row, number) each.

    Attributes:
        wanted: the modules whose calls in one row to keep; None for those in rows of a batch.
    """

    wanted: frozenset[nn.Module] | None = None
    found: list[Tensor] = field(default_factory=list[Tensor])
    names: list[str] = field(default_factory=list[str])

    def hear(self, call: Call) -> Tensor:
        """Keep the numbers, and go on."""
        rows, wanted = len(call.attention.query), self.wanted
        if rows > 1 if wanted is None else rows == 1 and call.module in wanted:
            self.names.append(type(call.module).__name__)
            self.found += [_few(getattr(call.attention, name)) for name in _TERMS]
        return super().hear(call)


class _TermsApart(_Terms, KeepApart):
    """Keeps them in a run with positions kept apart, so that frames hear nothing of each other."""


def _few(terms: Tensor) -> Float[Tensor, "row number"]:
    """Return a few numbers of each row's positions, one position after the other."""
    rows = len(terms)
    return mixed(terms.reshape(rows, -1, *terms.shape[-2:]), _FEW).reshape(rows, -1)


def check_rows(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass") -> None:
    """Refuse calls in rows of a batch, unless the rows are the tiles or images that the model reads, in their order.

    Each tile is changed by the bits of its number. In every call, queries, keys and values of the changed tiles must
    move, and no other row. Windows of one image, rows in another order, and one image's attention to another fail.
    """
    numbers = [number for number, rows in enumerate(recorded.rows) if rows > 1]
    if not numbers:
        return
    name, counts = type(recorded.modules[numbers[0]]).__name__, {recorded.rows[number]: None for number in numbers}
    rows = next(iter(counts))
    if not SEEN & inputs.keys():
        raise UnsupportedModel(f"{name} splits one text into {rows} rows; use a model that keeps a text in one row")
    main = next(one for one in _AXES if one in inputs)
    tiles = _tiles(main, inputs[main])
    if len(counts) > 1 or rows > len(tiles):
        raise UnsupportedModel(
            f"{name} attends in {' and '.join(map(str, counts))} rows, as over windows, but the parts of {main} are "
            f"{len(tiles)}; use a model whose rows are tiles or images"
        )
    orders = (_order(runner, inputs, main, numbers[-1], kind) for kind in (_Terms, _TermsApart))
    if not any(_is_order(one, rows) for one in orders):
        raise UnsupportedModel(
            f"{name} attends in {rows} rows, but these aren't the {len(tiles)} parts of {main} in their order, as "
            "changing them shows; use a model whose rows are tiles or images"
        )


def _is_order(order: Sequence[int] | None, rows: int) -> bool:
    return order is not None and len(order) == rows and all(one < other for one, other in pairwise(order))


def settle_rows(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass") -> WindowFinder | None:
    """Refuse rows of a batch that are neither tiles nor windows; return the finder of windows that are new.

    The pass must run again with them then.
    """
    if runner.windows.active:
        return None
    _refuse_crossing(runner, inputs, recorded)
    try:
        check_rows(runner, inputs, recorded)
    except UnsupportedModel as error:
        if not SEEN & inputs.keys():
            raise
        # Other threads run with the runner's own finder meanwhile.
        windows = WindowFinder(active=True)
        try:
            _ = windows.of(runner, inputs)
        except UnsupportedModel as why:
            raise UnsupportedModel(f"{error}; {why}") from error
        return windows
    return None


def _order(
    runner: "Runner", inputs: Mapping[str, Tensor], main: str, last: int, kind: type[_Terms]
) -> list[int] | None:
    """Return which tile each row reads; None if calls differ, or if a row reads none."""
    tiles = _tiles(main, inputs[main])
    before = _heard(runner, inputs, kind(keep=frozenset(), last=last)).found
    found = torch.zeros(len(before[0]) if before else 0, dtype=torch.long)
    for bit in range(len(tiles).bit_length()):
        changed = _changed(inputs, main, lambda number, bit=bit: bool(number >> bit & 1))
        after = _heard(runner, changed, kind(keep=frozenset(), last=last)).found
        moved = [_moved(runner, one, other) for one, other in _pairs(runner, before, after)]
        moved = [one for one in moved if bool(one.any())]  # learned queries depend on no tile
        if any(not torch.equal(one, moved[0]) for one in moved):
            return None
        found += moved[0].long() << bit if moved else 0
    return None if bool((found == 0).any()) else (found - 1).tolist()


def _refuse_crossing(runner: "Runner", inputs: Mapping[str, Tensor], recorded: "Pass") -> None:
    """Refuse a call in one row whose queries read other images than its keys: both would have the same names."""
    main = next((one for one in _AXES if one in inputs), None)
    count = 0 if main is None else len(_tiles(main, inputs[main]))
    numbers = _crossable(recorded) if count > 1 else []
    if main is None or not numbers:
        return
    wanted = frozenset(recorded.modules[number] for number in numbers)

    def terms_of(some: Mapping[str, Tensor]) -> _Terms:
        return _heard(runner, some, _TermsApart(keep=frozenset(), last=numbers[-1], wanted=wanted))

    terms = terms_of(inputs)
    moves = [set[tuple[int, bool]]() for _ in terms.found]
    for bit, has in product(range(count.bit_length()), (True, False)):
        changed = _changed(inputs, main, lambda number, bit=bit, has=has: bool(number >> bit & 1) == has)
        pairs = _pairs(runner, terms.found, terms_of(changed).found)
        far = [_share_moved(one, other) for one, other in pairs]
        for one, found in zip(far, moves, strict=True):
            if one > _STILL * max(far):
                found.add((bit, has))
    for number in range(0, len(moves), len(_TERMS)):
        reads = [one for one in moves[number : number + len(_TERMS)] if one]
        if any(one != reads[0] for one in reads):
            name = terms.names[number // len(_TERMS)]
            raise UnsupportedModel(
                f"{name} attends from one of the {count} parts of {main} to another, whose positions would have the "
                "same names; use a model that attends to all of them, or to one"
            )


def _crossable(recorded: "Pass") -> list[int]:
    """Return the calls in one row, but for causal ones: these attend to their own positions alone."""
    attentions = {number: call.attention for number, call in zip(recorded.numbers, recorded.calls, strict=True)}
    causal = {number for number, one in attentions.items() if is_causal(one.allowed, one.shape[-2:])}
    return [number for number, rows in enumerate(recorded.rows) if rows == 1 and number not in causal]


def _pairs(runner: "Runner", before: Sequence[Tensor], after: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return two runs' numbers side by side."""
    if len(before) != len(after):
        name = type(runner.model).__name__
        raise UnsupportedModel(f"{name} makes other attention calls once its images change; use one that doesn't")
    return list(zip(before, after, strict=True))


def _share_moved(one: Tensor, other: Tensor) -> float:
    """Return how far two terms are apart, as a share of their size; of other shapes, wholly."""
    return float((one - other).norm() / one.norm().clamp(min=1e-30)) if one.shape == other.shape else 1.0


def _changed(inputs: Mapping[str, Tensor], main: str, which: Callable[[int], bool]) -> dict[str, Tensor]:
    """Return inputs with the tiles changed whose numbers, from 1, are wanted."""
    several = _tiles(main, inputs[main]).clone()
    for number, tile in enumerate(several, 1):
        if which(number) and bool(tile.any()):  # one of zeros fills up a batch
            tile += 1 + tile.abs()
    return {**inputs, main: several.reshape(inputs[main].shape)}


def _heard(runner: "Runner", inputs: Mapping[str, Tensor], recorder: _Terms) -> _Terms:
    problem = f"can't match {type(runner.model).__name__}'s rows to its images: in a run for that"
    with naming_trial(runner, problem), contextlib.suppress(RunEnded), runner.hearing(recorder):
        runner.model(**(runner.settings | dict(inputs)))
    return recorder


def _moved(runner: "Runner", one: Tensor, other: Tensor) -> Tensor:
    """Return which rows differ."""
    if one.shape != other.shape:
        name = type(runner.model).__name__
        raise UnsupportedModel(f"{name} attends over other rows once its images change; use one that doesn't")
    moves = (one - other).square().sum(dim=1).sqrt()
    return (moves > _STILL * moves.max()).cpu()


def _tiles(main: str, values: Tensor) -> Tensor:
    """Return the tiles one after the other."""
    return values.reshape(-1, *values.shape[-_AXES[main] :]) if values.ndim > _AXES[main] else values[None]


def tile_names(regions: Sequence[Region | None], rows: int, images: int) -> list[str]:
    """Return each row's name, such as "tile 2 of 4", "thumbnail" or "image 2, tile 1 of 4".

    Args:
        regions: the rectangle of each position, row after row; empty if unknown.
        images: the number of images read.
    """
    each = len(regions) // rows
    own = [[one for one in regions[at * each : (at + 1) * each] if one is not None] for at in range(rows)]
    if rows == images:
        return [f"image {number} of {rows}" for number in range(1, rows + 1)]
    if not all(own):
        return [f"tile {number} of {rows}" for number in range(1, rows + 1)]
    reduced = [all(one.thumbnail for one in several) for several in own]
    image = [several[0].picture for several in own]
    names = list[str]()
    for at in range(rows):
        before = f"image {image[at] + 1}, " if images > 1 else ""
        alike = [other for other in range(rows) if image[other] == image[at] and not reduced[other]]
        names.append(before + ("thumbnail" if reduced[at] else f"tile {alike.index(at) + 1} of {len(alike)}"))
    return names


def in_tiles(one: Tokens, names: Sequence[str], regions: Sequence[Region | None]) -> Tokens:
    """Return the tokens of several tiles: those of one, with each tile's name and their rectangles."""
    labels = tuple(f"{name}, {said}" for name in names for said in one.names)
    count = len(names)
    return Tokens(
        labels, None, special=one.special * count, spelling=("text",) * len(labels),
        regions=tuple(regions) if len(regions) == len(labels) else (), slots=one.slots * count,
    )  # fmt: skip
