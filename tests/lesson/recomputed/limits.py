"""What weights don't tell: products of weights and lengths from queries, keys and values; and runs without a head."""

import math
from typing import NamedTuple

import numpy as np

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand


class _Row(NamedTuple):
    head: int
    query: int
    weights: by_hand.Array
    lengths: by_hand.Array

    @property
    def key(self) -> int:
        return int(self.weights.argmax())

    @property
    def added(self) -> by_hand.Array:
        return self.weights * self.lengths

    @property
    def place(self) -> int:
        return sorted(self.added, reverse=True).index(self.added[self.key]) + 1


def _layer(scene: Scene, run: RunText) -> int:
    trace, _ = by_hand.asked(scene, run)
    return int(scene.choice or trace.layer_count() - 1)


def _light(scene: Scene, run: RunText) -> _Row:
    """The word's row whose largest weight adds least, by its place; of ties, the one with the largest weight."""
    trace, _ = by_hand.asked(scene, run)
    layer, found = _layer(scene, run), list[_Row]()
    for head in range(trace.head_count(layer)):
        matrix = by_hand.weights(trace, layer, head)
        lengths = np.sqrt((by_hand.values(trace, layer, head) ** 2).sum(axis=1))
        found += [_Row(head, query, matrix[query], lengths) for query in by_hand.words(trace)]
    return max(found, key=lambda row: (row.place, row.weights[row.key]))


def _moved(scene: Scene, run: RunText) -> list[float]:
    trace, _ = by_hand.asked(scene, run)
    layer, old, found = _layer(scene, run), by_hand.array(trace.output), list[float]()
    for head in range(trace.head_count(layer)):
        new = by_hand.array(run("all-MiniLM-L6-v2", scene.text, edits=(Ablate(layer, head),)).output)
        found.append(
            by_hand.total(math.dist(a, b) / math.dist(a, [0] * len(a)) for a, b in zip(old, new, strict=True))
            / len(old)
        )
    return found


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    trace, query = by_hand.asked(scene, run)
    layer, moved = _layer(scene, run), _moved(scene, run)
    chosen_layer, chosen_head = by_hand.chosen_head(trace, query)
    other = by_hand.far_key(by_hand.weights(trace, chosen_layer, chosen_head), trace, query)
    linked = [by_hand.weights(trace, layer, head)[query, other] for head in range(len(moved))]
    looking, moving = linked.index(max(linked)), moved.index(max(moved))
    light = _light(scene, run)
    return {
        "layer": str(layer),
        "heads": str(len(moved)),
        "looking": str(looking),
        "moving": str(moving),
        "place": str(sorted(moved, reverse=True).index(moved[looking]) + 1),
        "weight": by_hand.share(float(linked[looking])),
        "its_weight": by_hand.share(float(linked[moving])),
        "effect": by_hand.percent(moved[looking]),
        "most": by_hand.percent(moved[moving]),
        "light": f"{light.head}: {by_hand.share(float(light.weights[light.key]))}, "
        f"{by_hand.number(light.added[light.key], 3)}, {light.place} of {len(light.added)}, "
        f"{by_hand.number(light.added.max(), 3)}",
    }


def _options(light: _Row) -> list[int]:
    ranked = sorted(range(len(light.weights)), key=lambda key: -light.weights[key])
    return sorted([*dict.fromkeys([light.key, int(light.added.argmax()), *ranked])][:4])


def values(scene: Scene, run: RunText) -> list[float]:
    light = _light(scene, run)
    return [float(light.added[key]) for key in _options(light)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    light = _light(scene, run)
    best = int(light.added.argmax())
    return {
        str(light.head),
        by_hand.number(light.weights[best], 3),
        by_hand.number(light.added[best], 3),
        by_hand.number(light.added[best] / light.weights[best], 3),
        *(by_hand.number(light.added[key], 3) for key in _options(light)),
    }
