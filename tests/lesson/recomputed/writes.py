"""What a head writes: its output through W_O, the last norm and the unembedding, and the toy's own logits."""

import torch

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand
from tests.lesson.recomputed import toy_by_hand as toy

AT = 1


def _place(scene: Scene) -> tuple[int, int]:
    if not scene.choice:
        return toy.reader()
    layer, head = scene.choice.split("·")
    return int(layer), int(head)


def _added(scene: Scene) -> list[float]:
    query, _, _ = toy.places(AT)
    hf = toy.model().hf_model
    with torch.no_grad():
        found = hf.lm_head(toy.through(hf.model.norm, toy.LAST, query)(toy.wrote(toy.LAST, *_place(scene), query)))
    found = found - found.mean()
    ids = toy.trace().query_tokens().ids
    return [float(found[ids[toy.places(at)[1]]]) for at in range(len(toy.WORDS))]


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    (layer, head), (query, _, _), added = _place(scene), toy.places(AT), _added(scene)
    best = toy.trace().query_tokens().ids[toy.places(added.index(max(added)))[1]]
    with toy.silenced(toy.LAST, layer, head):
        without = toy.logits(toy.LAST, query)
    shares = (logits.exp()[best] / logits.exp().sum() for logits in (toy.logits(toy.LAST, query), without))
    likely, silent = (by_hand.share(float(one)) for one in shares)
    return {
        "layer": str(layer),
        "head": str(head),
        "weight": by_hand.share(by_hand.weights(toy.trace(), layer, head, causal=True)[query].max()),
        "added": by_hand.number(max(added)),
        "taken": by_hand.number(min(added)),
        "likely": likely,
        "without": silent,
    }


def values(scene: Scene, run: RunText) -> list[float]:
    return _added(scene)


def numbers(scene: Scene, run: RunText) -> set[str]:
    return set()
