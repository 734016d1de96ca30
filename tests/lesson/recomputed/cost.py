"""What it costs: multiplications and weights counted one by one on small texts, and carried over by their growth."""

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText

WIDTH, SHORT, LONG, NOVEL, BYTES = 64, 512, 2048, 100_000, np.dtype(np.float32).itemsize


def _weights(tokens: int) -> int:
    return sum(1 for _ in range(tokens) for _ in range(8)) * tokens // 8


def _size(size: int) -> str:
    for unit, name in ((10**9, "gigabytes"), (10**6, "megabytes"), (10**3, "kilobytes")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size}"


def _equal() -> int:
    """The first length at which pairs take as many multiplications as the three projections."""
    tokens = 1
    while 2 * tokens * tokens * WIDTH < 3 * tokens * WIDTH * WIDTH:
        tokens += 1
    return tokens


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    tokens = int(scene.choice or SHORT)
    return {
        "width": str(WIDTH),
        "equal": str(_equal()),
        "tokens": f"{tokens:,}",
        "weights": f"{_weights(tokens):,}",
        "room": _size(_weights(tokens) * BYTES),
        "short": f"{SHORT:,}",
        "short_weights": f"{_weights(SHORT):,}",
        "long": f"{LONG:,}",
        "long_weights": f"{_weights(LONG):,}",
        "formula_times": str(_weights(LONG) // _weights(SHORT)),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    sizes = ("400 kilobytes", "25.6 megabytes", "40 gigabytes")
    return [float(one == _size(_weights(NOVEL) * BYTES)) for one in sizes]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return {f"{NOVEL:,}", str(BYTES), _size(_weights(NOVEL) * BYTES)}
