"""Heads work together: the toy's weights from its queries and keys, and a score's parts from its matrices."""

import math

import torch

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand
from tests.lesson.recomputed import toy_by_hand as toy

AT = 1


def _step(scene: Scene) -> int:
    return int(scene.choice or toy.LAST)


def _by_word(step: int) -> list[float]:
    """The parts of the score that each position gives, through any head of the first layer or as the word itself."""
    query, _, key = toy.places(AT)
    run, block = toy.trace(step), toy.model(step).hf_model.model
    found = [
        sum(toy.score_of(step, query, key, toy.wrote(step, 0, head, key, source)) for head in range(run.head_count(0)))
        for source in range(key + 1)
    ]
    with torch.no_grad():
        itself = block.embed_tokens(torch.tensor(run.query_tokens().ids))[key]
    found[key] += toy.score_of(step, query, key, itself)
    return found


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    step, (query, before, key) = _step(scene), toy.places(AT)
    (layer, head), (early_layer, early) = toy.reader(), toy.writer(AT)
    width = toy.trace(step).attention(layer).query.shape[-1]
    with toy.silenced(step, early_layer, early):
        silent = toy.model(step).trace(toy.TEXT)
    return {
        "step": str(step),
        "layer": str(layer),
        "head": str(head),
        "before_layer": str(early_layer),
        "before_head": str(early),
        "before": by_hand.share(by_hand.weights(toy.trace(step), early_layer, early, causal=True)[key, before]),
        "weight": by_hand.share(by_hand.weights(toy.trace(step), layer, head, causal=True)[query, key]),
        "without": by_hand.share(by_hand.weights(silent, layer, head, causal=True)[query, key]),
        "score": by_hand.number(by_hand.scores(toy.trace(step), layer, head)[query, key] / math.sqrt(width)),
        "by_word": by_hand.number(max(_by_word(step))),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    return _by_word(_step(scene))


def numbers(scene: Scene, run: RunText) -> set[str]:
    """What the score has beside the words' parts."""
    score = float(facts(scene, run)["score"].replace("−", "-"))
    return {by_hand.number(score - sum(_by_word(_step(scene))))}
