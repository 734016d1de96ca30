"""Measures the rectangle of an image that moves each placeholder of a text.

The vision tower runs with every position attending to itself alone, on a random image of the same shape. Bands of the
image are changed by the bits of their number in Gray code, each bit and its opposite, so that few runs tell all bands.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.media.remade import PICTURE, Remade
from attention_viz.recording.hooks import hooked
from attention_viz.recording.recorder import Call, Recorder, RunEnded, own_values, recording
from attention_viz.trace.tokens import Region

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attention_viz.recording.runner import Runner

Regions = tuple[Region | None, ...]
Edges = list[tuple[float, float]]
# A position reads a band if the band moves it by this share of the band that moves it most.
_SUPPORT = 0.02
# The reason if positions have no places because rectangles overlap.
_OVERLAP = "their rectangles overlap"
# A position that moves less than this share of the largest move isn't moved by the picture.
_STILL = 1e-5
# More bands than this along a side are never measured one by one.
_MOST_SINGLE = 256
# Edges nearer than this share of a side are one.
_TOUCH = 1e-9
# A tile that covers more than this of each side of an image covers all of it.
_WHOLE = 0.9


class Apart(Recorder):
    """Lets each position attend to itself alone.

    Attributes:
        tower: the queries of the first call over tiles, (position, width); None without tiles.
    """

    tower: Tensor | None = None

    def hear(self, call: Call) -> Tensor:
        """Return each position's own value, (row, head, query, d_v)."""
        query = call.attention.query
        if self.tower is None and query.ndim == 4 and len(query) > 1:
            self.tower = query.transpose(1, 2).flatten(2).flatten(0, 1)
        return own_values(call.attention)


def embedded(runner: "Runner", inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
    """Return the language model's input, (position, width), with the positions of images kept apart.

    With tiles, also return the first queries of their tower.
    """
    body, recorder, found = language_of(runner.model), Apart(), list[Tensor]()

    def enter(_module: nn.Module, _inputs: object, named: Mapping[str, Any]) -> None:
        if recording.get() is recorder:
            if isinstance(read := named.get("inputs_embeds"), Tensor):
                found.append(read[0].detach().double().cpu())
            raise RunEnded

    with hooked([body], lambda *_heard: None, enter, named=True):
        with contextlib.suppress(RunEnded), runner.hearing(recorder):
            runner.model(**(runner.settings | dict(inputs)))
    if not found or found[0].ndim != 2:
        raise UnsupportedModel(f"can't find the input of the language model of {type(runner.model).__name__}")
    # Windows aren't tiles.
    return found[0], None if runner.windows.active else recorder.tower


def language_of(model: Any) -> nn.Module:
    """Return the language model inside a model that reads images, too."""
    with contextlib.suppress(Exception):
        if isinstance(body := model.get_decoder(), nn.Module) and body is not model:
            return body
    raise UnsupportedModel(f"{type(model).__name__} has no language model of its own to put a picture into")


class _Moves:
    """Runs a model on changed images, and measures how far each placeholder moves, and each position in a tile.

    Attributes:
        whole: the moves if all images change, the largest of placeholders and of tiles' positions 1.
        towers: the number of positions in tiles, which follow the placeholders.
    """

    def __init__(self, runner: "Runner", remade: Remade, marks: Sequence[int]) -> None:
        """Run it unchanged, and changed throughout."""
        self._runner, self._remade, self._marks = runner, remade, list(marks)
        self._still = self._read(remade.changed([np.zeros(size, np.bool_) for size in remade.sizes]))
        self.towers = sum(map(len, self._still[1:]))
        self._largest = [1.0] * len(self._still)
        groups = self.by(self.pictured(range(len(remade.sizes)))).split([len(one) for one in self._still])
        self._largest = [float(one.max()) or 1.0 for one in groups]
        self.whole = torch.cat([one / size for one, size in zip(groups, self._largest, strict=True)])

    def _read(self, tensors: Mapping[str, Tensor]) -> list[Tensor]:
        text, tower = embedded(self._runner, self._runner.inputs(tensors))
        return [text[self._marks], *([] if tower is None else [tower.detach().double().cpu()])]

    def by(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Return each placeholder's move, and each position's in a tile, (placeholder,)."""
        found = zip(self._read(tensors), self._still, self._largest, strict=True)
        return torch.cat([(one - still).square().sum(dim=1).sqrt() / size for one, still, size in found])

    def coded(self, count: int, change: Callable[[Sequence[int]], Mapping[str, Tensor]]) -> Tensor:
        """Return the moves by each bit of `count` numbers and by its opposite, (bit, 2, placeholder)."""
        found = list[Tensor]()
        for bit in range((count - 1).bit_length()):
            halves = ([one for one in range(count) if gray_bit(one, bit) == which] for which in (0, 1))
            found.append(torch.stack([self.by(change(half)) for half in halves]))
        return torch.stack(found) if found else torch.zeros(0, 2, len(self.whole))

    def banded(self, axis: int) -> "Bands":
        """Measure which patches of the images move each position, along rows or columns."""
        sizes = self._remade.sizes
        bands = [self._remade.bands(picture, axis) for picture in range(len(sizes))]

        def change(numbers: Sequence[int]) -> Mapping[str, Tensor]:
            inside = [np.isin(one, list(numbers)) for one in bands]
            several = zip(inside, sizes, strict=True)
            return self._remade.changed(
                [np.broadcast_to(one[:, None] if axis == 0 else one[None], size) for one, size in several]
            )

        return Bands(self, max(int(one[-1]) for one in bands) + 1, change, list(map(_edges_of, bands)))

    def lines(self, axis: int) -> "Bands":
        """Measure which patches of its tile move each position, along rows or columns."""
        band = np.arange(self._remade.tensors[PICTURE].shape[axis - 2], dtype=np.int64) // self._remade.patch

        def change(numbers: Sequence[int]) -> Mapping[str, Tensor]:
            return self._remade.with_lines(axis, np.isin(band, list(numbers)).nonzero()[0].tolist())

        return Bands(self, int(band[-1]) + 1, change, [_edges_of(band)] * len(self._remade.sizes))

    def pictured(self, numbers: Sequence[int]) -> Mapping[str, Tensor]:
        """Return the tensors with some images changed as a whole."""
        sizes = enumerate(self._remade.sizes)
        return self._remade.changed([np.full(size, one in numbers, np.bool_) for one, size in sizes])


class Bands:
    """The bands along rows or columns that move each position.

    Attributes:
        inside: which bands may move each position, (position, band).
        edges: each band's edges in each image, in shares of the side.
    """

    def __init__(
        self, moves: _Moves, count: int, change: Callable[[Sequence[int]], Mapping[str, Tensor]], edges: list[Edges]
    ) -> None:
        """Measure all bands with few runs."""
        self._moves, self._change, self.edges = moves, change, edges
        self.inside = _candidates(moves.coded(count, change), count, _SUPPORT)

    def settle(self, which: Tensor, tiles: Tensor) -> None:
        """Measure with a run per band if the few runs don't tell the bands of these positions.

        Raises:
            UnsupportedModel: there are too many bands.
        """
        count = self.inside.shape[1]
        if not bool(which.any()) or _is_plain(self.inside[which], tiles[which]):
            return
        if count > _MOST_SINGLE:
            raise UnsupportedModel(_OVERLAP)
        each = torch.stack([self._moves.by(self._change([band])) for band in range(count)], dim=1)
        self.inside = (each > _SUPPORT * each.amax(dim=1, keepdim=True)) & (each > 0)


def measured(runner: "Runner", remade: Remade, marks: Sequence[int]) -> tuple[Regions, Regions]:
    """Return the rectangle that each placeholder reads; None if no pixel moves it, or all of several tokens' image.

    Also return those of all positions of a tower that reads tiles, row after row; none without tiles.

    Args:
        remade: the images' shapes.
        marks: the placeholders' positions in the text.

    Raises:
        UnsupportedModel: the language model's input isn't accessible.
    """
    moves, sizes = _Moves(runner, remade, marks), remade.sizes
    still = moves.whole <= _STILL
    pictures = _candidates(moves.coded(len(sizes), moves.pictured), len(sizes), _SUPPORT)
    if remade.times and not _is_plain(pictures[~still], torch.zeros(int((~still).sum()))):
        each = torch.stack([moves.by(moves.pictured([frame])) for frame in range(len(sizes))], dim=1)
        pictures = (each > _SUPPORT * each.amax(dim=1, keepdim=True)) & (each > 0)
    tiles = torch.zeros(len(still), dtype=torch.long)
    if remade.tiles:
        tiles = _candidates(moves.coded(remade.tiles, remade.with_tiles), remade.tiles, _SUPPORT).int().argmax(dim=1)
    tiles[len(marks) :] += max(remade.tiles, 1)
    own = [moves.banded(axis) for axis in (0, 1)]
    reduced = torch.zeros(len(still), dtype=torch.bool)
    if remade.tiles:
        reduced = _reduced(own, tiles, pictures.int().argmax(dim=1))
    small = [moves.lines(axis) for axis in (0, 1)] if bool(reduced.any()) else []
    for axes, which in ((own, ~still & ~reduced), (small, ~still & reduced)):
        for one in axes:
            one.settle(which, tiles)
    places = [None if still[at] else _span(pictures[at], remade.times) for at in range(len(still))]
    found = list[Region | None]()
    for at, span in enumerate(places):
        axes = small if reduced[at] else own
        edges = [] if span is None else [_side(one.inside[at], one.edges[span[0]]) for one in axes]
        found.append(_region(span, places.count(span), edges, bool(reduced[at]), remade.times))
    for several in (found[: len(marks)], found[len(marks) :]):
        check_apart(several)
    return tuple(found[: len(marks)]), tuple(found[len(marks) :])


def _edges_of(band: "NDArray[np.int64]") -> Edges:
    """Return each band's first and last edge, in shares of the side."""
    numbers = range(int(band[-1]) + 1)
    found = [(np.searchsorted(band, number), np.searchsorted(band, number, "right")) for number in numbers]
    return [(float(first / len(band)), float(last / len(band))) for first, last in found]


def _side(inside: Tensor, edges: Edges) -> tuple[float, float] | None:
    """Return the first and last edge of bands side by side; None without bands.

    Raises:
        UnsupportedModel: other bands are between them.
    """
    numbers = inside[: len(edges)].nonzero()[:, 0].tolist()
    if not numbers:
        return None
    if numbers[-1] - numbers[0] >= len(numbers):
        raise UnsupportedModel(_OVERLAP)
    return edges[numbers[0]][0], edges[numbers[-1]][1]


def check_apart(regions: Sequence[Region | None]) -> None:
    """Refuse rectangles that overlap: they aren't the parts that positions read.

    Raises:
        UnsupportedModel: two intervals of an image's rows or columns overlap and differ.
    """
    sides = dict[tuple[object, ...], set[tuple[float, float]]]()
    for one in regions:
        if one is not None:
            which = (one.picture, one.start, one.end, one.thumbnail)
            sides.setdefault((*which, 0), set()).add((one.top, one.bottom))
            sides.setdefault((*which, 1), set()).add((one.left, one.right))
    for several in sides.values():
        if any(one[1] > other[0] + _TOUCH for one, other in pairwise(sorted(several))):
            raise UnsupportedModel(_OVERLAP)


def _span(found: Tensor, times: Sequence[float]) -> tuple[int, int] | None:
    """Return the first and last image that a placeholder reads; of several, only neighbouring frames are one span."""
    numbers = found.nonzero()[:, 0].tolist()
    if not numbers or (len(numbers) > 1 and not times) or numbers[-1] - numbers[0] >= len(numbers):
        return None
    return numbers[0], numbers[-1]


def _region(
    span: tuple[int, int] | None,
    several: int,
    edges: Sequence[tuple[float, float] | None],
    reduced: bool,
    times: Sequence[float],
) -> Region | None:
    """Return a placeholder's rectangle; None if it reads the whole image, like others."""
    sides = [one for one in edges if one is not None]
    if span is None or len(sides) < 2 or (several > 1 and sides == [(0, 1), (0, 1)]):
        return None
    (top, bottom), (left, right) = sides
    first, last = span
    when = (times[first], times[last]) if times else (None, None)
    return Region(first, top, left, bottom, right, reduced, *when)


def gray_bit(number: int, which: int) -> int:
    """Return a bit of a number in Gray code, whose neighbours differ by one bit."""
    return (number ^ number >> 1) >> which & 1


def _candidates(coded: Tensor, count: int, share: float) -> Tensor:
    """Return which numbers may have moved each placeholder, (placeholder, number): no run denies them."""
    moved = coded > share * coded.amax(dim=(0, 1), keepdim=True) if len(coded) else coded > 0
    found = torch.ones(coded.shape[-1], count, dtype=torch.bool)
    for bit, runs in enumerate(moved):
        which = torch.tensor([gray_bit(number, bit) for number in range(count)])
        found &= runs[which].T
    return found


def _is_plain(found: Tensor, tiles: Tensor) -> bool:
    """Return whether each placeholder's bands are neighbours, and each two of one tile have the same bands or none.

    Only then do the codes tell its bands alone.
    """
    for tile in tiles.unique():
        kinds = found[tiles == tile].unique(dim=0).int()
        if bool((kinds.sum(dim=0) > 1).any()) or not bool(kinds.any(dim=1).all()):
            return False
        if bool((kinds.diff(dim=1, prepend=kinds.new_zeros(len(kinds), 1)).clamp_min(0).sum(dim=1) > 1).any()):
            return False
    return True


def _reduced(axes: "Sequence[Bands]", tiles: Tensor, pictures: Tensor) -> Tensor:
    """Return which placeholders are of a tile that covers the whole of its image, where others cover parts.

    Args:
        axes: which bands move each placeholder, along rows and columns.
        tiles: each placeholder's tile.
        pictures: each placeholder's image.
    """
    covers = dict[int, bool]()
    for tile in tiles.unique().tolist():
        own = tiles == tile
        picture = int(pictures[own][0])
        shares = (one.inside[own].any(dim=0)[: len(one.edges[picture])].float().mean() for one in axes)
        covers[tile] = min(map(float, shares)) > _WHOLE
    if all(covers.values()):
        return torch.zeros(len(tiles), dtype=torch.bool)
    return torch.tensor([covers[int(tile)] for tile in tiles])
