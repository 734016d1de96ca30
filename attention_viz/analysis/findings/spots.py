"""Image patches, and the class token, that look at two or three compact regions at once."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.analysis.findings.finding import Candidate
from attention_viz.analysis.findings.regions import PatchGrid, connected
from attention_viz.analysis.findings.scene import StreamScene

# A patch belongs to a region if it has this share of the row's largest weight: what the explorer's contour encloses.
TOGETHER = 0.5
# One region may be a fixed step away from each query, and more than three are no few.
_FEWEST, _MOST = 2, 3
# Patches of the smallest region, and the largest share of the image in all of them.
_SMALLEST, _LARGEST = 2, 0.15
# Steps from the query to the nearest region.
_AWAY = 2
# The share of the row, and how many times what other rows give to the same patches, and to patches as far from them.
_LEAST, _TIMES, _TIMES_BESIDE = 0.3, 1.7, 2
# Rows of each head whose regions are looked for, those with most weight in them first.
_OF_A_HEAD = 16


@dataclass(frozen=True, eq=False)
class _PlacedLayer:
    """A layer's searched rows over the patches; `seats` are the rows' own patches, −1 for the class token."""

    number: int
    grid: PatchGrid
    weights: Float[Tensor, "head row down across"]
    positions: tuple[int, ...]
    seats: tuple[tuple[int, int], ...]


def spots_of(scene: StreamScene) -> list[Candidate]:
    """Return the rows with two or three compact regions away from the query; empty without patches.

    No region touches the image's edge, where patches often collect weight from everywhere.
    """
    patches = scene.queries.tokens.patches
    if not scene.alike or not patches:
        return []
    special = [at for at, one in enumerate(scene.queries.tokens.special) if one]
    positions = (*special[:1], *(at for at in scene.rows if at in patches))
    seats = tuple((int(patches[at][0]), int(patches[at][1])) if at in patches else (-1, -1) for at in positions)
    grid = PatchGrid.of(scene)
    found = list[Candidate]()
    for number in scene.trace.layer_numbers(scene.stream):
        rows = scene.trace.attention(number, scene.stream).rows(list(positions)).weights
        weights = grid.of_weights(rows.detach().float().cpu().nan_to_num(0))
        found += _of_layer(scene, _PlacedLayer(number, grid, weights, positions, seats))
    return found


def _of_layer(scene: StreamScene, layer: _PlacedLayer) -> list[Candidate]:
    weights = layer.weights
    inside = weights >= TOGETHER * weights.amax(dim=(2, 3), keepdim=True).clamp_min(1e-12)
    shares = (weights * inside).sum(dim=(2, 3))
    # A row's own weights count little among all rows'.
    usual = (weights.mean(dim=1, keepdim=True) * inside).sum(dim=(2, 3))
    area = inside.sum(dim=(2, 3)) / float((layer.grid.positions >= 0).sum())
    edge = torch.ones(inside.shape[2:], dtype=torch.bool)
    edge[1:-1, 1:-1] = False
    fits = (shares >= _LEAST) & (shares >= _TIMES * usual) & (area <= _LARGEST) & ~(inside & edge).any(dim=(2, 3))
    scores = torch.where(fits, shares * (1 - area), 0)
    best, order = scores.topk(min(_OF_A_HEAD, scores.shape[1]), dim=1)
    found = list[Candidate]()
    for head in range(len(weights)):
        for score, row in zip(best[head].tolist(), order[head].tolist(), strict=True):
            parts = _parts(inside[head, row], layer.seats[row]) if score > 0 else []
            share = float(shares[head, row])
            if not parts or share < _TIMES_BESIDE * _beside(layer, head, row, inside[head, row]):
                continue
            heaviest = int(layer.grid.positions.flatten()[int(weights[head, row].argmax())])
            seen = layer.positions[row], heaviest
            words = scene.queries.of_position[seen[0]], scene.keys.of_position[heaviest]
            smallest = min(len(part) for part in parts)
            found.append(
                Candidate(
                    *("regions", score * (1 - 1 / smallest), share, scene.stream, layer.number, head, *words),
                    words=len(parts),
                    seen=seen,
                )
            )
    return found


def _parts(inside: Bool[Tensor, "down across"], seat: tuple[int, int]) -> list[frozenset[tuple[int, int]]]:
    """Return the regions, or none if they are too few, too many, too small or beside the query."""
    parts = connected(inside)
    if not _FEWEST <= len(parts) <= _MOST or min(len(part) for part in parts) < _SMALLEST:
        return []
    steps = (max(abs(row - seat[0]), abs(column - seat[1])) for part in parts for row, column in part)
    return parts if seat == (-1, -1) or min(steps) >= _AWAY else []


def _beside(layer: _PlacedLayer, head: int, row: int, inside: Bool[Tensor, "down across"]) -> float:
    """Return the mean weight that other patches give to patches as far from them; 0 for the class token."""
    seat, (down, across) = layer.seats[row], inside.shape
    if seat == (-1, -1):
        return 0.0
    others = [at for at, one in enumerate(layer.seats) if one not in ((-1, -1), seat)]
    if not others:
        return 0.0
    steps = torch.tensor([layer.seats[at] for at in others]) - torch.tensor(seat)
    places = inside.nonzero()[None] + steps[:, None]
    within = ((places >= 0) & (places < torch.tensor([down, across]))).all(dim=(1, 2))
    if not bool(within.any()):
        return 0.0
    rows, columns = places[within].unbind(dim=2)
    return float(layer.weights[head, torch.tensor(others)[within][:, None], rows, columns].sum(dim=1).mean())
