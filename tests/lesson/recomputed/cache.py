"""Fewer keys and values: the cache of the model itself counted, its rows in numpy, and its own weights averaged."""

import itertools
import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace
from tests.shipped import load_once

MODEL = "SmolLM2-135M-Instruct"
LONG = 32768


def _hugging_face() -> Any:
    return load_once(MODEL).hf_model


def _stored(ids: torch.Tensor) -> int:
    """Count the numbers in the cache that transformers makes itself, per token and layer."""
    with torch.no_grad():
        cache = _hugging_face()(ids, use_cache=True).past_key_values
    layers = (
        cache.to_legacy_cache()
        if hasattr(cache, "to_legacy_cache")
        else [(one.keys, one.values) for one in cache.layers]
    )
    return sum(one.numel() for pair in layers for one in pair) // ids.numel() // len(layers)


@contextmanager
def averaged(sets: int) -> Generator[None]:
    """Replace the learned matrices of keys and values by means of neighbouring heads, and put them back."""
    before = list[tuple[torch.Tensor, torch.Tensor]]()
    try:
        for layer in _hugging_face().model.layers:
            for made in (layer.self_attn.k_proj, layer.self_attn.v_proj):
                weight, width = made.weight.data, layer.self_attn.head_dim
                before.append((weight, weight.clone()))
                heads = weight.view(sets, -1, width, weight.shape[-1])
                weight.copy_(heads.mean(dim=1, keepdim=True).expand_as(heads).reshape(weight.shape))
        yield
    finally:
        for weight, own in before:
            weight.copy_(own)


def moved(ids: torch.Tensor, sets: int) -> float:
    with torch.no_grad():
        whole = _hugging_face()(ids).logits[0].double().softmax(-1)
        with averaged(sets):
            fewer = _hugging_face()(ids).logits[0].double().softmax(-1)
    return float(np.abs((whole - fewer).numpy()).sum(-1).mean() / 2)


def rows(trace: Trace, layer: int, query: int) -> np.ndarray:
    call = trace.attention(layer)
    q, k = (one.detach().double().numpy() for one in (call.query, call.key))
    found = []
    for head in range(len(q)):
        scores = k[head * len(k) // len(q), : query + 1] @ q[head, query] / math.sqrt(q.shape[-1])
        powers = np.exp(scores - scores.max())
        found.append(powers / powers.sum())
    return np.array(found)


def _asked(scene: Scene, trace: Trace) -> int:
    return len(trace.query_tokens()) - 1 if scene.word is None else scene.word


def _most_apart(scene: Scene, trace: Trace) -> tuple[int, tuple[int, int, int], np.ndarray]:
    """The layer whose heads of a set differ most, the two heads and key that do, and the layer's rows."""
    heads, sets = trace.attention(0).query.shape[0], trace.attention(0).key.shape[0]
    pairs = [one for one in itertools.combinations(range(heads), 2) if len({at * sets // heads for at in one}) == 1]
    found = {layer: rows(trace, layer, _asked(scene, trace)) for layer in range(trace.layer_count())}
    layer = max(found, key=lambda at: sum(np.abs(found[at][one] - found[at][other]).sum() for one, other in pairs))
    gaps = {(*pair, key): abs(found[layer][pair[0]][key] - found[layer][pair[1]][key])
            for pair in pairs for key in range(len(found[layer][0]))}  # fmt: skip
    return layer, max(gaps, key=lambda at: gaps[at]), found[layer]


def _megabytes(numbers: int) -> str:
    size = 2 * numbers / 10**6
    return f"{round(size):,}" if size >= 100 else f"{size:.3g}"


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    trace = run(MODEL, scene.text)
    ids = torch.tensor([trace.query_tokens().numbers])
    config = _hugging_face().config
    layers, heads, own = config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads
    width = config.hidden_size // heads
    stored = {"grouped": _stored(ids), "each": _stored(ids) // own * heads, "one": _stored(ids) // own}
    stored["latent"] = 9 * width // 2  # DeepSeek-V2's table 1: 9/2 of a head's width
    told = {"layers": str(layers), "heads": str(heads), "own": str(own), "bytes": "2"}
    told |= {"vector": str(4 * width), "rotary": str(width // 2)}
    lengths = {"tokens": ids.numel(), "long": LONG}
    told |= {name: f"{count:,}" for name, count in lengths.items()}
    for name, numbers in stored.items():
        told[f"{name}_numbers"] = f"{numbers:,}"
        told |= {f"{name}_{length}": _megabytes(layers * numbers * count) for length, count in lengths.items()}
    return told | {"grouped": f"one set for {heads // own} heads"} | _what(scene, trace, ids, heads, own, width)


def _what(scene: Scene, trace: Trace, ids: torch.Tensor, heads: int, own: int, width: int) -> dict[str, str]:
    label = f"One set for {heads // own} heads"
    if scene.choice == "latent":
        said = (
            f"Each head computes its keys and values from one vector of {4 * width} numbers; {width // 2} more hold "
            f"the position. {MODEL} has none: this is counted by DeepSeek-V2's rule."
        )
        return {"what": said}
    if scene.choice == "each":
        said = (
            f"{own} sets, copied for {heads} heads, give the same weights: nothing is gained. Only training could make "
            f"{heads} different ones."
        )
        return {"what": said}
    if scene.choice == "one":
        said = (
            f"If its {own} sets are averaged to 1, {moved(ids, 1):.2f} of the probability moves to other next tokens. "
            "This model wasn't trained for that; models that were predict nearly as well as with many sets."
        )
        return {"what": said}
    layer, (one, other, key), found = _most_apart(scene, trace)
    names = trace.query_tokens().names
    said = (
        f"This is how the model was trained. In layer {layer}, heads {one} and {other} have the same keys, but other "
        f"queries: “{names[_asked(scene, trace)]}” gives “{names[key]}” {found[one][key]:.2f} in one and "
        f"{found[other][key]:.2f} in the other."
    )
    return {"what": said, "name": label}


def values(scene: Scene, run: RunText) -> list[float]:
    """Only keys and values are needed: an old query changes no later output."""
    return [0.0, 1.0, 0.0, 0.0]


def numbers(scene: Scene, run: RunText) -> set[str]:
    """What the cache takes per token in all layers."""
    trace = run(MODEL, scene.text)
    return {str(trace.layer_count() * _stored(torch.tensor([trace.query_tokens().numbers])))}
