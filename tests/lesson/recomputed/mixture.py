"""The weighted sum: a real head's values by numpy's principal directions, mixed one by one."""

import numpy as np
from scipy.spatial import ConvexHull

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand


def _mixed(scene: Scene, run: RunText) -> tuple[by_hand.Array, by_hand.Array, float, tuple[int, int]]:
    """The query's weights, the values in their plane, its part of their variance, and the head."""
    trace, opening = by_hand.asked(scene, run)
    layer, head = by_hand.chosen_head(trace, opening)
    query = int(scene.choice) if scene.choice else opening
    value = by_hand.values(trace, layer, head)
    centred = value - value.mean(axis=0)
    sizes, directions = np.linalg.eigh(centred.T @ centred)
    points = centred @ directions[:, :-3:-1]
    return by_hand.weights(trace, layer, head)[query], points, sizes[-2:].sum() / sizes.sum(), (layer, head)


def _point(numbers: by_hand.Array) -> str:
    return f"({by_hand.number(numbers[0])}, {by_hand.number(numbers[1])})"


def _turned(points: by_hand.Array, like: by_hand.Array) -> by_hand.Array:
    """Which way a direction points is nobody's to say: turn each as the lesson did."""
    return points * np.sign((points * like).sum(axis=0))


def _lesson_points(scene: Scene, run: RunText) -> by_hand.Array:
    from attention_viz.lesson.own_head import in_a_plane

    trace, opening = by_hand.asked(scene, run)
    flat, _ = in_a_plane(trace, *by_hand.chosen_head(trace, opening))
    return by_hand.array(flat.attention(0).value[0])


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    row, points, kept, (layer, head) = _mixed(scene, run)
    points = _turned(points, _lesson_points(scene, run))
    order = sorted(range(len(row)), key=lambda at: -row[at])
    terms = [f"{by_hand.share(row[at])} · {_point(points[at])}" for at in order[:3]]
    trace, _ = by_hand.asked(scene, run)
    output = [
        by_hand.total(weight * place for weight, place in zip(row, points[:, axis], strict=True)) for axis in (0, 1)
    ]
    return {
        "layer": str(layer),
        "head": str(head),
        "d_v": str(trace.attention(layer).value.shape[-1]),
        "weight": by_hand.share(max(row)),
        "total": by_hand.share(by_hand.total(row)),
        "sum": " + ".join([*terms, "…"]),
        "output": _point(np.array(output)),
        "share": f"{100 * kept:.0f}%",
        "corners": f"{len(ConvexHull(points).vertices)} corners",
    }


def values(scene: Scene, run: RunText) -> list[float]:
    """Which of the places on the bars is the mixture."""
    row, _, _, _ = _mixed(scene, run)
    from attention_viz.lesson import LESSONS

    right = by_hand.number(float(row @ _lesson_points(scene, run)[:, 0]))
    return [float(option == right) for option in LESSONS["mixture"].ask(scene).options]


def numbers(scene: Scene, run: RunText) -> set[str]:
    row, points, _, _ = _mixed(scene, run)
    places = _turned(points, _lesson_points(scene, run))[:, 0]
    first, second, *rest = sorted(range(len(row)), key=lambda at: -row[at])
    share = sum(row[at] for at in rest)
    mean = sum(row[at] * places[at] for at in rest) / share
    weights = {by_hand.share(one) for one in (row[first], row[second], share)}
    return weights | {by_hand.number(one) for one in (places[first], places[second], mean, row @ places)}
