"""Sum leaves' contributions into rows by part, layer and position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from attention_viz.circuits.ledger import Leaf
from attention_viz.circuits.opened import OpenedRun
from attention_viz.recording.gradients import ModelRun
from attention_viz.trace.once import once


class WritingPart(NamedTuple):
    """The part that wrote a row; None without layer, head or position. A mixer's position is that of the value."""

    kind: str
    stream: str | None
    layer: int | None
    head: int | None
    position: int | None


@dataclass(frozen=True, eq=False)
class WritingParts:
    """The parts of one opened run."""

    opened: OpenedRun
    run: ModelRun

    @once
    def layers(self) -> list[tuple[list[str], tuple[str, int]]]:
        """Return the name of each module that mixes tokens, in parts, and its stream and layer."""
        run, names = self.run, {module: name for name, module in self.run.runner.model.named_modules()}
        attending = zip((names.get(one, "") for one in run.anatomy.modules), run.anatomy.places, strict=True)
        stream = next(iter(run.queries))
        mixing = ((names[one], (stream, int(label))) for one, label in run.runner.mixing.items() if label.isdigit())
        return [(name.split("."), place) for name, place in (*attending, *mixing)]

    def sums(self, contributions: Sequence[Tensor | None]) -> dict[WritingPart, float]:
        """Return each part's summed contributions, without unused leaves."""
        found: dict[WritingPart, float] = {}
        for leaf, cells in zip(self.opened.leaves, contributions, strict=True):
            if cells is None:
                continue
            for part, number in self._split(leaf, cells.double()).items():
                found[part] = found.get(part, 0.0) + number
        return found

    def _split(self, leaf: Leaf, cells: Tensor) -> Mapping[WritingPart, float]:
        stream, layer = self.place(leaf)
        if leaf.call is not None:  # (1, head, query, d_v)
            table = cells[0].sum(dim=-1)
            spots = table.nonzero().tolist()
            return {WritingPart("head", stream, layer, head, at): float(table[head, at]) for head, at in spots}
        if leaf.mixer is not None:
            by_channel = self.opened.mixers[leaf.mixer].mixer.per == "channel"
            table = cells[0].sum(dim=-1).sum(dim=0, keepdim=True) if by_channel else cells[0].sum(dim=-1)
            spots = table.nonzero().tolist()
            return {
                WritingPart("mixer", stream, layer, None if by_channel else head, at): float(table[head, at])
                for head, at in spots
            }
        if leaf.kind == "chunk":
            return {WritingPart("other", stream, layer, None, None): float(cells.sum())}
        axis = self._axis(cells, stream)
        if axis is None:
            return {WritingPart(leaf.kind, stream, layer, None, None): float(cells.sum())}
        row = cells.movedim(axis, 0).flatten(1).sum(dim=1)
        return {WritingPart(leaf.kind, stream, layer, None, at): float(row[at]) for (at,) in row.nonzero().tolist()}

    def _axis(self, cells: Tensor, stream: str | None) -> int | None:
        """Return the axis of positions; None if all positions share the output."""
        counts = {len(tokens) for name, tokens in self.run.queries.items() if stream is None or name == stream}
        return next((axis for axis in range(cells.ndim - 1) if cells.shape[axis] in counts and cells.ndim > 1), None)

    def place(self, leaf: Leaf) -> tuple[str | None, int | None]:
        """Return the leaf's stream and layer, else the nearest attention module's."""
        if leaf.call is not None:
            return self.run.anatomy.places[leaf.call]
        if leaf.mixer is not None:
            mixer = self.opened.mixers[leaf.mixer]
            return mixer.stream, mixer.layer
        own = leaf.path.split(".")
        shared = [_shared(own, path) for path, _ in self.layers]
        best = max(range(len(shared)), key=lambda number: (len(shared[number]), -number), default=None)
        if best is None:
            return next(iter(self.run.queries)), None
        nearest, (stream, layer) = self.layers[best]
        stream = stream if stream != "cross" else "decoder"
        inside = any(part.isdigit() for part in shared[best])
        found = layer if inside else _beside(own, nearest, len(shared[best]), layer)
        alone = len(self.run.anatomy.layers) <= 1 or any(len(one) < len(shared[best]) for one in shared)
        return (stream if alone else None), found


def _beside(own: Sequence[str], nearest: Sequence[str], at: int, layer: int) -> int | None:
    """Return the layer by its number, if not the nearest attention's; None without layer, or if numbered otherwise."""
    listed = at < len(own) and at < len(nearest) and own[at].isdigit() and nearest[at] == str(layer)
    return int(own[at]) if listed else None


def _shared(one: Sequence[str], other: Sequence[str]) -> list[str]:
    found: list[str] = []
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        found.append(mine)
    return found


def matrix(parts: WritingParts, columns: Sequence[Sequence[Tensor | None]]) -> tuple[list[WritingPart], Tensor]:
    """Return the parts and contributions, (part, number)."""
    sums = [parts.sums(column) for column in columns]
    names = list(dict.fromkeys(part for one in sums for part in one))
    return names, torch.tensor([[one.get(name, 0.0) for one in sums] for name in names], dtype=torch.float64)
