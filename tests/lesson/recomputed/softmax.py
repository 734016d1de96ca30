"""The softmax: powers of e with Python's own decimals, from the head's queries and keys."""

import math
from decimal import Decimal

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import scores


def _entries(scene: Scene, run: RunText) -> list[float]:
    query, key, _ = scores.pair(Scene(scene.text, run), run)
    temperature = float(scene.choice or 1)
    return [float(query[scores.BANK] @ one) / math.sqrt(query.shape[1]) / temperature for one in key]


def _powers(entries: list[float]) -> list[Decimal]:
    """Without subtracting the largest: decimals can be as large as they like."""
    return [Decimal(one).exp() for one in entries]


def values(scene: Scene, run: RunText) -> list[float]:
    powers = _powers(_entries(scene, run))
    return [float(one / sum(powers)) for one in powers]


def _share(value: float) -> str:
    return "<0.01" if 0 < value < 0.005 else f"{value:.2f}"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    entries, shares = _entries(scene, run), values(scene, run)
    first, second = sorted(range(len(shares)), key=lambda at: -shares[at])[:2]
    query, key, _ = scores.pair(Scene(scene.text, run), run)
    return {
        "d_k": str(query.shape[1]),
        "temperature": scene.choice or "1",
        "most_weight": _share(shares[first]),
        "weight": _share(shares[second]),
        "total": _share(sum(shares)),
        "exponential": _number(shares[second] / shares[first]),
        "sum": _number(1 / shares[first]),
        "score": _number(float(query[scores.BANK] @ key[first])),
        "entry": _number(entries[second]),
        "largest": _number(entries[first]),
        "less": _number(entries[second] - entries[first]),
        "entropy": _number(-sum(one * math.log(one) for one in shares)),
        "most_entropy": _number(math.log(len(shares))),
    }


def numbers(scene: Scene, run: RunText) -> set[str]:
    shares, powers = sorted(values(scene, run), reverse=True), sorted(_powers(_entries(scene, run)), reverse=True)
    first, second = (float(one.ln()) for one in powers[:2])
    return (
        {_share(one) for one in (*shares[:2], sum(shares[2:]))}
        | {_number(first), _number(second), _number(first - second)}
        | {
            *("0", "4", str(len(shares) - 2)),
            scene.choice or "1",
        }
    )
