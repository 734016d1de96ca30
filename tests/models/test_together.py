"""Thirty threads on four models at once: each trace is the one taken alone."""

from concurrent.futures import ThreadPoolExecutor

import torch

import attention_viz as av
from attention_viz.models.model import AttentionModel

TEXTS = {
    "all-MiniLM-L6-v2": ("The bank of the river was flooded", "The cat sat because it was tired."),
    "coreference": ("the animal did not cross the street because it was too tired", "the queen painted her house"),
    "induction": ("moon cheese frog ring moon cheese", "frog ring frog"),
    "translation": ("the boy finds the key and he sells it", "the cat sees the dog"),
}
THREADS = 30


def same(one: av.Trace, other: av.Trace) -> bool:
    if one.streams != other.streams or not torch.allclose(one.output, other.output, rtol=1e-4, atol=1e-5):
        return False
    return all(
        one.query_tokens(stream) == other.query_tokens(stream)
        and torch.allclose(a.attention.weights, b.attention.weights, rtol=0, atol=1e-6)
        for stream in one.streams
        for a, b in zip(one.layers[stream], other.layers[stream], strict=True)
    )


def test_thirty_threads_on_four_models_each_get_their_own_trace() -> None:
    models = {name: av.load(name) for name in TEXTS}
    wishes = [(name, text) for name, texts in TEXTS.items() for text in texts]
    alone = {wish: models[wish[0]].trace(wish[1]) for wish in wishes}
    before = [
        [module.training for module in model.hf_model.modules()]
        for model in models.values()
        if isinstance(model, AttentionModel)
    ]

    def take(number: int) -> list[bool]:
        # Each begins somewhere else, so that every model meets every other.
        order = wishes[number % len(wishes) :] + wishes[: number % len(wishes)]
        return [same(models[name].trace(text), alone[name, text]) for name, text in order * 3]

    with ThreadPoolExecutor(THREADS) as threads:
        results = list(threads.map(take, range(THREADS)))
    assert len(results) == THREADS
    assert all(all(one) for one in results)
    after = [
        [module.training for module in model.hf_model.modules()]
        for model in models.values()
        if isinstance(model, AttentionModel)
    ]
    assert after == before
    assert all(one.trace(TEXTS[name][0]).fidelity.ok for name, one in models.items())
