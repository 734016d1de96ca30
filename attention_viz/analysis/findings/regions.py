"""Image regions that several heads' class tokens look at."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.analysis.findings.finding import Candidate
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.places import patch_grid

# A region is the smallest that has this share of a head's weight on patches.
_HALF = 0.5
# Larger than this share of a picture it is no region.
_LARGEST = 0.4
# A head looks at a region where it gives it so much of its weight, and so many times the share that the region has of
# the picture.
_LEAST, _TIMES = 0.4, 1.7
# Heads that have to do so.
_FEWEST = 2


@dataclass(frozen=True, eq=False)
class LitRegion:
    """An image region that a layer's heads look at, with its share of their weight and of the image."""

    layer: int
    heads: tuple[int, ...]
    of: int
    patches: tuple[int, ...]
    heaviest: int
    share: float
    area: float

    @property
    def score(self) -> float:
        """Return share × (1 − area) × the share of heads."""
        return self.share * (1 - self.area) * len(self.heads) / self.of


def regions_of(scene: StreamScene) -> list[Candidate]:
    """Return each layer's main region; empty without a class token."""
    queries = scene.queries.tokens
    looking = next((at for at, special in enumerate(queries.special) if special), None)
    if looking is None or not scene.alike or not queries.patches:
        return []
    found = (region_of(scene, layer, looking) for layer in scene.trace.layer_numbers(scene.stream))
    return [
        Candidate("region", one.score, one.share, scene.stream, one.layer, one.heads[0], looking, one.heaviest)
        for one in found
        if one is not None
    ]


def region_of(scene: StreamScene, layer: int, looking: int) -> LitRegion | None:
    """Return a layer's main region; None if fewer than two heads agree."""
    call = scene.trace.attention(layer, scene.stream).rows([looking])
    weights, grid = call.weights[:, 0].detach().float().cpu().nan_to_num(0), PatchGrid.of(scene)
    maps = grid.of_weights(weights)
    maps = maps / maps.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    best: LitRegion | None = None
    for one in maps:
        region = grid.largest_part(_densest(_smoothed(one)))
        found = _looked_at(region, maps, layer, grid, weights)
        if found is not None and (best is None or (found.score, -found.area) > (best.score, -best.area)):
            best = found
    return best


@dataclass(frozen=True, eq=False)
class PatchGrid:
    """A picture's patch positions, row by row; −1 for none."""

    positions: Tensor

    @classmethod
    def of(cls, scene: StreamScene) -> "PatchGrid":
        """Return the patches along the queries."""
        return cls(patch_grid(scene.queries.tokens))

    def of_weights(self, weights: Float[Tensor, "*some key"]) -> Float[Tensor, "*some row column"]:
        """Arrange the weights as in the image."""
        return torch.where(self.positions >= 0, weights[..., self.positions.clamp_min(0)], 0)

    def largest_part(self, inside: Bool[Tensor, "row column"]) -> Bool[Tensor, "row column"]:
        """Return the largest connected group of patches."""
        found = torch.zeros_like(inside)
        for row, column in max(connected(inside), key=len, default=frozenset[tuple[int, int]]()):
            found[row, column] = True
        return found


def connected(inside: Bool[Tensor, "row column"]) -> list[frozenset[tuple[int, int]]]:
    """Return the groups of patches that touch each other, as `regionsOf` in the explorer's `seen/patches.js`."""
    left, parts = {(row, column) for row, column in inside.nonzero().tolist()}, list[frozenset[tuple[int, int]]]()
    while left:
        start = min(left)
        left.remove(start)
        part, edge = set[tuple[int, int]](), [start]
        while edge:
            row, column = edge.pop()
            part.add((row, column))
            near = {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)} & left
            left -= near
            edge += near
        parts.append(frozenset(part))
    return parts


def _smoothed(weights: Float[Tensor, "row column"]) -> Float[Tensor, "row column"]:
    """Over a third of the side, so that one object is one region."""
    around = max(1, min(weights.shape) // 6)
    wide = 2 * around + 1
    return torch.nn.functional.avg_pool2d(weights[None], wide, stride=1, padding=around, count_include_pad=False)[0]


def _densest(weights: Float[Tensor, "row column"]) -> Bool[Tensor, "row column"]:
    order = weights.flatten().argsort(descending=True, stable=True)
    shares = weights.flatten()[order].cumsum(0) / weights.sum().clamp_min(1e-12)
    inside = torch.zeros(weights.numel(), dtype=torch.bool)
    inside[order[: int((shares < _HALF).sum()) + 1]] = True
    return inside.reshape(weights.shape)


def _looked_at(
    region: Bool[Tensor, "row column"],
    maps: Float[Tensor, "head row column"],
    layer: int,
    grid: PatchGrid,
    weights: Float[Tensor, "head key"],
) -> LitRegion | None:
    area = float(region.sum()) / float((grid.positions >= 0).sum())
    if not 0 < area <= _LARGEST:
        return None
    shares = (maps * region).sum(dim=(1, 2))
    heads = [head for head, share in enumerate(shares.tolist()) if share >= max(_LEAST, _TIMES * area)]
    if len(heads) < _FEWEST:
        return None
    heads.sort(key=lambda head: -float(shares[head]))
    patches = grid.positions[region]
    heaviest = int(patches[weights[heads][:, patches].mean(dim=0).argmax()])
    share = float(shares[heads].mean())
    return LitRegion(layer, tuple(heads), len(maps), tuple(patches.tolist()), heaviest, share, area)
