"""Images: the class token's softmax in numpy, summed over squares, and the patches that touch found by flooding."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace

MODEL, GRID, PLACES = "dinov2-small", 16, 8


def _rows(trace: Trace, layer: int) -> np.ndarray:
    call = trace.attention(layer)
    query, key = (tensor.detach().double().numpy() for tensor in (call.query, call.key))
    entries = np.einsum("hd,hkd->hk", query[:, 0], key) / math.sqrt(query.shape[-1])
    powers = np.exp(entries - entries.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _region(grid: np.ndarray) -> set[tuple[int, int]]:
    """The largest patch, and from it all neighbours, corners too, with at least half of its weight."""
    start = divmod(int(grid.argmax()), GRID)
    found, ahead = {start}, [start]
    while ahead:
        row, column = ahead.pop()
        for near in ((row + down, column + across) for down in (-1, 0, 1) for across in (-1, 0, 1)):
            inside = 0 <= near[0] < GRID and 0 <= near[1] < GRID
            if inside and near not in found and grid[near] >= grid.max() / 2:
                found.add(near)
                ahead.append(near)
    return found


def _head(scene: Scene, run: RunText) -> tuple[int, int, np.ndarray, Trace]:
    """The head with most weight on patches that touch, beyond an even look's, and its row."""
    trace = run(MODEL, scene.choice or "chelsea")
    best: tuple[float, int, int, np.ndarray] | None = None
    for layer in range(12):
        for head, row in enumerate(_rows(trace, layer)):
            grid = row[1:].reshape(GRID, GRID)
            region = _region(grid)
            gain = sum(grid[one] for one in region) - len(region) / GRID**2 if len(region) > 1 else 0.0
            if best is None or gain > best[0]:
                best = float(gain), layer, head, row
    assert best is not None
    return *best[1:], trace


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    layer, head, row, trace = _head(scene, run)
    grid = row[1:].reshape(GRID, GRID)
    region = _region(grid)
    share, part = float(sum(grid[one] for one in region)), len(region) / GRID**2
    picture = trace.seen.picture
    assert picture is not None
    return {
        "high": str(len(picture)),
        "wide": str(len(picture[0])),
        "side": str(len(picture) // GRID),
        "patches": str(GRID**2),
        "positions": str(len(row)),
        "layer": str(layer),
        "head": str(head),
        "count": str(len(region)),
        "part": f"{part:.2f}",
        "share": f"{share:.2f}",
        "itself": "<0.01" if row[0] < 0.005 else f"{row[0]:.2f}",
        "times": f"{share / part:.1f}",
    }


def values(scene: Scene, run: RunText) -> list[float]:
    _, _, row, _ = _head(scene, run)
    wide = GRID // PLACES
    return [
        float(sum(row[1 + GRID * (wide * down + a) + wide * across + b] for a in range(wide) for b in range(wide)))
        for down in range(PLACES)
        for across in range(PLACES)
    ]


def numbers(scene: Scene, run: RunText) -> set[str]:
    """The places with twice an even look's weight, how many there are, and what they have together."""
    found = values(scene, run)
    even = sum(found) / PLACES**2
    much = [one for one in found if one >= 2 * even]
    return {f"{even:.3f}", "2", str(len(much)), f"{sum(much):.2f}", str(PLACES**2)}
