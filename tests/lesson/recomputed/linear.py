"""Attention without a softmax: rows and states word by word, and multiplications counted in loops."""

import math

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens.states import small_example
from tests.lesson.recomputed import by_hand

WIDE, LENGTHS = 64, {"short": 10, "middle": 1_000, "long": 100_000}


def _decay(scene: Scene) -> float:
    return float(scene.choice or 1)


def _plain(number: float) -> str:
    text = by_hand.number(number, 4)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _counted(tokens: int) -> tuple[int, int]:
    """Multiplications per pair and per word, counted over a few, times how many there are."""
    pair = sum(1 for _ in range(WIDE)) + sum(1 for _ in range(WIDE))
    word = sum(1 for _ in range(WIDE) for _ in range(WIDE)) + sum(1 for _ in range(WIDE) for _ in range(WIDE))
    return pair * tokens * tokens, word * tokens


def _large(number: int) -> str:
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:,g} {name}"
    return f"{number:,}"


def _read(scene: Scene) -> float:
    """Query · key × decay × value, over the two held words and the new one."""
    return 1 * _decay(scene) * 3 + 0 * _decay(scene) * 5 + 1 * 2


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    mixer, decay = small_example(scene).mixer, _decay(scene)
    query, key, value = (by_hand.array(one) for one in (mixer.query, mixer.key, mixer.value))
    at = len(key) - 1
    row = [by_hand.total(query[at] * key[word]) * decay ** (at - word) for word in range(at + 1)]
    by_rows = [by_hand.total(weight * one for weight, one in zip(row, value[:, c], strict=True)) for c in (0, 1)]
    state = [[0.0, 0.0], [0.0, 0.0]]
    for one, other in zip(key, value, strict=True):
        state = [[decay * state[i][j] + one[i] * other[j] for j in (0, 1)] for i in (0, 1)]
    by_state = [by_hand.total(query[at][i] * state[i][j] for i in (0, 1)) for j in (0, 1)]
    found = {
        "d": "2",
        "keys": "3",
        "decay": f"{decay:g}",
        "wide": str(WIDE),
        "row": ", ".join(map(_plain, row)),
        "sum": _plain(by_hand.total(row)),
        "by_rows": ", ".join(map(_plain, by_rows)),
        "by_state": ", ".join(map(_plain, by_state)),
        "angle": "120",
        "overlap": by_hand.number(math.cos(math.radians(360 / 3)), 1),
    }
    for name, tokens in LENGTHS.items():
        pairs, states = _counted(tokens)
        found |= {name: f"{tokens:,}", f"{name}_pairs": _large(pairs), f"{name}_state": _large(states)}
    return found


def values(scene: Scene, run: RunText) -> list[float]:
    kept, after = 3 * _decay(scene), (3 * _decay(scene) + 2, 5 * _decay(scene) + 2)
    return [float(one == _read(scene)) for one in sorted({kept, 2.0, sum(after), _read(scene)})]


def numbers(scene: Scene, run: RunText) -> set[str]:
    kept = 3 * _decay(scene)
    return {"0", "1", "2", "3", "5", f"{_decay(scene):g}", _plain(_read(scene)), _plain(kept)}
