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


def _added(place: tuple[int, int]) -> list[float]:
    query, _, _ = toy.places(AT)
    hf = toy.model().hf_model
    with torch.no_grad():
        found = hf.lm_head(toy.through(hf.model.norm, toy.LAST, query)(toy.wrote(toy.LAST, *place, query)))
    found = found - found.mean()
    ids = toy.trace().query_tokens().ids
    return [float(found[ids[toy.places(at)[1]]]) for at in range(len(toy.WORDS))]


def _chance(silenced: tuple[int, int] | None = None) -> float:
    """The toy's probability of the word that followed last time."""
    query, _, key = toy.places(AT)
    token = toy.trace().query_tokens().ids[key]
    if silenced is None:
        logits = toy.logits(toy.LAST, query)
    else:
        with toy.silenced(toy.LAST, *silenced):
            logits = toy.logits(toy.LAST, query)
    return float(logits.exp()[token] / logits.exp().sum())


def _others() -> list[tuple[int, int]]:
    places = [(layer, head) for layer in (0, 1) for head in range(toy.trace().head_count(layer))]
    return [place for place in places if place != toy.reader()]


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    (layer, head), (query, _, _), added = _place(scene), toy.places(AT), _added(_place(scene))
    (early_layer, early), (later_layer, later) = toy.writer(AT), toy.reader()
    return {
        "layer": str(layer),
        "head": str(head),
        "weight": by_hand.share(by_hand.weights(toy.trace(), layer, head, causal=True)[query].max()),
        "added": by_hand.number(max(added)),
        "taken": by_hand.number(min(added)),
        "likely": by_hand.share(_chance()),
        "without": by_hand.share(_chance((layer, head))),
        "early_layer": str(early_layer),
        "early": str(early),
        "later_layer": str(later_layer),
        "later": str(later),
        "small": by_hand.number(_added((early_layer, early))[AT + 1]),
        "left": by_hand.share(_chance((early_layer, early))),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    return [max(0.0, _chance() - _chance(place)) for place in _others()]


def numbers(scene: Scene, run: RunText) -> set[str]:
    """What the reader adds, and what is left and lost without it, or without another head."""
    left = {by_hand.share(_chance(place)) for place in (toy.reader(), *_others())}
    left |= {by_hand.share(one) for one in values(scene, run)}
    return {by_hand.number(_added(toy.reader())[AT + 1]), *left, *(str(one) for place in _others() for one in place)}
