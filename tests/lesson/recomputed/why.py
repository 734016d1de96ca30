"""Why attention: a real model's weights, from its queries and keys."""

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand


def _row(scene: Scene, run: RunText) -> tuple[by_hand.Array, dict[str, str]]:
    trace, opening = by_hand.asked(scene, run)
    query = int(scene.choice) if scene.choice else opening
    layer, head = by_hand.chosen_head(trace, opening)
    matrix = by_hand.weights(trace, layer, head)
    weight = matrix[query, by_hand.far_key(matrix, trace, query)]
    heads = [call.query.shape[0] for call in map(trace.attention, trace.layer_numbers())]
    return matrix[query], {
        "layer": str(layer),
        "head": str(head),
        "layers": str(len(heads)),
        "heads": str(sum(heads)),
        "weight": by_hand.share(weight),
        "percent": f"{100 * weight:.0f} %",
    }


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    return _row(scene, run)[1]


def values(scene: Scene, run: RunText) -> list[float]:
    return list(_row(scene, run)[0])


def numbers(scene: Scene, run: RunText) -> set[str]:
    return {by_hand.share(max(values(scene, run)))}
