"""Finds the part of an image or audio at each position.

Each claim is tested: if a part changes, its position's query must change most in the tower's first layer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.batches.batch import UNCHANGED, Intervention, call_of
from attention_viz.recording.layout.foreign import foreign_code
from attention_viz.recording.layout.origins import calls_apart, check_counts, distances
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from attention_viz.recording.runner import Runner

# The ends of inputs' names that have an image's size in patches, so that its pixels are patches in a row.
PACKED = ("grid_thw", "grid_hw", "target_sizes", "spatial_shapes")

CLASS, DISTILLED, REGISTER, EXTRA = "[CLS]", "[DIST]", "[REG{}]", "[EXTRA{}]"


@dataclass(frozen=True)
class Grid:
    """An image's patches; `patch` is height and width in pixels, `before` includes registers."""

    patch: tuple[int, int]
    before: int
    after: int
    registers: int = 0

    def tokens(self, pixels: Tensor) -> Tokens:
        """Return the tokens of an image, (1, colours, rows, columns): special ones, then patches row by row."""
        rows, columns = _counts(pixels, self.patch)
        first = [CLASS, *([REGISTER.format(number) for number in range(1, self.registers + 1)])]
        if self.before == 2 and not self.registers:
            first = [CLASS, DISTILLED]
        lead = first[: self.before] + [EXTRA.format(number) for number in range(len(first), self.before)]
        tail = [EXTRA.format(number) for number in range(1, self.after + 1)]
        places = [(float(row), float(column)) for row in range(rows) for column in range(columns)]
        labels = (*lead, *(f"{row:g},{column:g}" for row, column in places), *tail)
        around = [True] * len(lead), [True] * len(tail)
        return Tokens(
            labels,
            None,
            special=(*around[0], *[False] * len(places), *around[1]),
            spelling=("text",) * len(labels),
            place=(*[None] * len(lead), *places, *[None] * len(tail)),
        )


@dataclass(frozen=True)
class FrameLine:
    """The positions of audio frames, `step` seconds apart."""

    step: float

    def tokens(self, count: int) -> Tokens:
        """Return frames labelled by their start."""
        seconds = [round(number * self.step, 6) for number in range(count)]
        labels = tuple(f"{second:.2f} s" for second in seconds)
        return Tokens(labels, None, spelling=("text",) * count, place=tuple((second,) for second in seconds))


def numbered(count: int) -> Tokens:
    """Return tokens with only their order."""
    return Tokens(tuple(map(str, range(count))), None, spelling=("text",) * count)


def in_windows(tokens: Tokens, origin: Sequence[int]) -> Tokens:
    """Return the tokens at windows' places: those of the input, copies of them, and those that the model adds.

    Args:
        tokens: those of the input's positions.
        origin: the position at each place, in order; −1 for those that the model adds.
    """
    if list(origin) == list(range(len(tokens))):
        return tokens
    labels, places, copies, added = list[str](), list[tuple[float, ...] | None](), Counter[int](), 0
    for one in origin:
        copies[one] += 1
        if one < 0:
            added += 1
            labels.append(EXTRA.format(added))
        else:
            labels.append(tokens.labels[one] + (f", copy {copies[one]}" if copies[one] > 1 else ""))
        places.append(None if one < 0 else tokens.place[one])
    special = tuple(one < 0 or tokens.special[one] for one in origin)
    return Tokens(tuple(labels), None, special=special, spelling=("text",) * len(labels), place=tuple(places))


def patches(
    runner: "Runner",
    inputs: Mapping[str, Tensor],
    name: str,
    count: int,
    call: int = 0,
    inside: Intervention = UNCHANGED,
    tiles: int = 1,
    side: str = "query",
) -> Grid:
    """Find an image's grid of patches, or that of each tile if it is cut into tiles, among a call's queries or keys."""
    family, pixels = type(runner.model).__name__, inputs[name]
    patch = _patch_size(runner.model.config)
    if (sizes := next((one for one in inputs if one.endswith(PACKED)), None)) is not None:
        raise UnsupportedModel(
            f"can't match positions to image patches: {family} reads patches one by one, and {sizes} says which image "
            "they make"
        )
    if pixels.ndim < 4 or pixels.shape[:-3].numel() != tiles or patch is None:
        raise UnsupportedModel(
            f"can't match positions to image patches: {family} has no patch size in its configuration, or {name} isn't "
            f"({tiles}, colours, rows, columns) but {tuple(pixels.shape)}"
        )
    rows, columns = _counts(pixels, patch)
    count //= tiles
    if count < rows * columns:
        raise UnsupportedModel(
            f"can't show {family}: {count} positions don't match {rows} × {columns} image patches; it probably merges "
            "patches or uses windowed attention"
        )
    some = [(0, 0), (rows // 2, columns - 1), (rows - 1, columns // 2)]
    tried = dict.fromkeys((at * (tiles - 1) // 2, *place) for at, place in enumerate(some))

    def changed(place: tuple[int, int, int]) -> Tensor:
        (height, width), (tile, row, column) = patch, place
        part = torch.zeros_like(pixels.reshape(-1, *pixels.shape[-3:]))
        part[tile, :, row * height : (row + 1) * height, column * width : (column + 1) * width] = 1
        return pixels + part.reshape(pixels.shape) * (1 + pixels.abs())

    found = {place: moved(runner, inputs, name, changed(place), call, inside, side) for place in tried}
    starts = {position - (tile * count + row * columns + column) for (tile, row, column), position in found.items()}
    (before, *others) = sorted(starts)
    if others or before < 0 or before + rows * columns > count:
        raise UnsupportedModel(
            f"can't match positions to image patches: {family} doesn't order them row by row, as these show: "
            f"{_listed(found)}"
        )
    if any(foreign_code(runner.tree.modules)):
        _check_kept(runner, inputs, name, {place: changed(place) for place in tried}, found)
    registers = min(getattr(_vision(runner.model.config), "num_register_tokens", None) or 0, max(before - 1, 0))
    return Grid(patch, before, count - before - rows * columns, registers)


def _check_kept(
    runner: "Runner",
    inputs: Mapping[str, Tensor],
    name: str,
    changed: Mapping[tuple[int, int, int], Tensor],
    found: Mapping[tuple[int, int, int], int],
) -> None:
    """Refuse foreign code that moves patches between layers: with positions kept apart, the same row moves in all."""
    before = calls_apart(runner, inputs)
    count = before[0].attention.shape[-1]
    for place, pixels in changed.items():
        after = calls_apart(runner, {**inputs, name: pixels})
        check_counts(runner, before, after)
        # Code that drops patches by their pixels makes calls of another size, which prove nothing.
        alike = [
            (one, other, side)
            for one, other in zip(before, after, strict=True)
            for side in ("query", "key")
            if getattr(one.attention, side).shape == getattr(other.attention, side).shape
        ]
        for one, other, side in alike:
            far = distances(one, other, side)
            if len(far) == count and bool(far.any()) and int(far.argmax()) != found[place]:
                path = next(path for path, module in runner.model.named_modules() if module is one.module)
                raise UnsupportedModel(
                    f"can't match positions to image patches: in {path}, the patch at row {place[1]} and column "
                    f"{place[2]} is at position {int(far.argmax())}, but at {found[place]} in the first layer; "
                    "remove the hook, forward or subclass that moves it"
                )


def frames(
    runner: "Runner", inputs: Mapping[str, Tensor], name: str, count: int, seconds: float, call: int = 0
) -> FrameLine:
    """Find the line of audio frames."""
    values = inputs[name]
    axis = max(range(1, values.ndim), key=lambda one: values.shape[one])
    length = values.shape[axis]
    wide = max(1, length // 100)

    def changed(share: float) -> Tensor:
        middle = round(share * length)
        part = torch.zeros(length)
        part[max(0, middle - wide // 2) : middle - wide // 2 + wide] = 1
        shape = [1] * values.ndim
        shape[axis] = length
        # By turns up and down, so that no norm over time takes it out again.
        return values + part.reshape(shape).to(values) * (1 + values.abs()) * _turns(values, axis)

    found = {share: moved(runner, inputs, name, changed(share), call) for share in (0.2, 0.5, 0.8)}
    off = max(abs(position / count - share) for share, position in found.items())
    if off > max(0.03, 2 / count):
        raise UnsupportedModel(
            f"can't match positions to times: {type(runner.model).__name__} doesn't order audio frames by time, as "
            f"these changes show: {_listed(found)}"
        )
    return FrameLine(seconds / count)


def _turns(values: Tensor, axis: int) -> Tensor:
    shape = [1] * values.ndim
    shape[axis] = values.shape[axis]
    return (1.0 - 2.0 * (torch.arange(values.shape[axis]) % 2)).reshape(shape).to(values)


def moved(
    runner: "Runner",
    inputs: Mapping[str, Tensor],
    name: str,
    changed: Tensor,
    call: int,
    inside: Intervention = UNCHANGED,
    side: str = "query",
) -> int:
    """Return the position whose query, or key, changes most."""
    before, after = (
        getattr(call_of(runner, {**inputs, name: one}, call, inside).attention, side).detach()
        for one in (inputs[name], changed)
    )
    return int((after - before).flatten(2).square().sum(dim=(0, 2)).argmax())


def _counts(pixels: Tensor, patch: tuple[int, int]) -> tuple[int, int]:
    return pixels.shape[-2] // patch[0], pixels.shape[-1] // patch[1]


def _patch_size(config: Any) -> tuple[int, int] | None:
    found = getattr(_vision(config), "patch_size", None)
    if isinstance(found, int):
        return (found, found)
    if isinstance(found, list | tuple) and len(found) == 2 and all(isinstance(one, int) for one in found):
        return (found[0], found[1])
    return None


def _vision(config: Any) -> Any:
    return next((part for name in ("vision_config", "encoder") if (part := getattr(config, name, None))), config)


def _listed(found: Mapping[Any, int]) -> str:
    return ", ".join(f"{place} (found at position {position})" for place, position in found.items())
