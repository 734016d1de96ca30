"""Write, keep, erase: the trained head's state, decayed, erased and written word by word."""

import math

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand

PAIRS = (("ben", "blue"), ("anna", "red"), ("ben", "green"))
RULES = {"adds": (1.0, False), "half": (0.5, True), "erases": (1.0, True)}


def _text(name: str) -> str:
    return " , ".join(" ".join(pair) for pair in PAIRS) + f" . {name} ?"


def _read(run: RunText, name: str, rule: str, place: tuple[int, int]) -> dict[str, float]:
    """Each colour's weight for the question: what the state gives back of a value that only its word writes."""
    trace = run("recall", _text(name))
    mixer, (part, erases) = trace.attention(place[0], "mixer").head(place[1]), RULES[rule]
    keys, beta = by_hand.array(mixer.key), part * by_hand.array(mixer.write).reshape(-1)
    decay, query = np.exp(by_hand.array(mixer.decay)).reshape(len(keys), -1), by_hand.array(mixer.query)[-1]
    words = _text(name).split()
    found = {}
    for colour in ("blue", "red", "green"):
        state = np.zeros(keys.shape[-1])
        for at, key in enumerate(keys):
            state = state * decay[at]
            old = key @ state if erases else 0.0
            state = state + beta[at] * key * (float(at == len(keys) - len(words) + words.index(colour)) - old)
        found[colour] = float(mixer.scale) * float(query @ state)
    return found


def _place(run: RunText) -> tuple[int, int]:
    """The head with the largest weight for the last colour of the name with two."""
    trace = run("recall", _text("ben"))
    every = [
        (layer, head) for layer in trace.layer_numbers("mixer") for head in range(trace.head_count(layer, "mixer"))
    ]
    return max(every, key=lambda one: abs(_read(run, "ben", "erases", one)["green"]))


def _plain(number: float) -> str:
    return by_hand.number(number, 3).rstrip("0")


def _cosine(run: RunText, one: str, other: str, place: tuple[int, int]) -> float:
    words = _text("ben").split()
    keys = by_hand.array(run("recall", _text("ben")).attention(place[0], "mixer").head(place[1]).key)
    first, second = (keys[len(keys) - len(words) + words.index(colour)] for colour in (one, other))
    return float(first @ second) / math.sqrt(float(first @ first) * float(second @ second))


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    place, rule = _place(run), scene.choice or "half"
    found = {
        "layer": str(place[0]),
        "head": str(place[1]),
        "same": by_hand.number(_cosine(run, "blue", "green", place)),
        "apart": by_hand.number(_cosine(run, "blue", "red", place)),
        "other": _plain(_read(run, "anna", rule, place)["red"]),
    }
    for one in RULES:
        got = _read(run, "ben", one, place)
        found |= {f"{one}_old": _plain(got["blue"]), f"{one}_new": _plain(got["green"])}
    return found


def values(scene: Scene, run: RunText) -> list[float]:
    got = _read(run, "ben", scene.choice or "half", _place(run))
    old, new = abs(got["blue"]), abs(got["green"])
    alike = min(old, new) > 0.75 * max(old, new)
    return [float(old > new and not alike), float(new > old and not alike), float(alike)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return {_plain(one) for one in _read(run, "ben", scene.choice or "half", _place(run)).values()}
