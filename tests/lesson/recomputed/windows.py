"""Windows and sinks: transformers' own run under a mask made cell by cell, and rows in numpy."""

import math
from functools import cache

import numpy as np
import torch

import attention_viz as av
from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens.caching.windows import PASSAGE
from attention_viz.trace.trace import Trace
from tests.shipped import load_once

MODEL = "SmolLM2-135M-Instruct"


def _text(scene: Scene) -> str:
    return f"{scene.text}. {PASSAGE}"


def _sees(way: str, query: int, key: int, width: int) -> bool:
    if way == "last":
        return key > query - width
    if way == "sink":
        return key == 0 or key > query - width + 1
    return way == "all" or key < width - 1 or key == query


def mask(way: str, count: int, width: int) -> list[list[bool]]:
    return [[key <= query and _sees(way, query, key, width) for key in range(count)] for query in range(count)]


@cache
def likely(numbers: tuple[int, ...], way: str, width: int) -> np.ndarray:
    """Each true next token's probability in transformers' own run."""
    allowed, ids = torch.tensor(mask(way, len(numbers), width)), torch.tensor([numbers])
    added = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
    with torch.no_grad():
        logits = load_once(MODEL).hf_model(ids, attention_mask=added[None, None]).logits[0].double().numpy()
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    return np.array([shares[at, token] for at, token in enumerate(numbers[1:])])


def _mean(trace: Trace, way: str, width: int) -> float:
    return float(likely(tuple(trace.query_tokens().numbers), way, width)[width:].mean())


def row(trace: Trace, layer: int, head: int, query: int, seen: list[bool]) -> np.ndarray:
    call = trace.attention(layer)
    q, k = (one.detach().double().numpy() for one in (call.query, call.key))
    scores = k[head * len(k) // len(q)] @ q[head, query] / math.sqrt(q.shape[-1])
    powers = np.where(seen, np.exp(scores - scores[seen].max()), 0)
    return powers / powers.sum()


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    trace, width = run(MODEL, _text(scene)), int(scene.choice or 8)
    texts, count = trace.query_tokens().texts, len(trace.query_tokens())
    back = max(at for at, word in enumerate(texts) if word.strip() == "back")
    open_keys = mask("all", count, width)[back]
    layers, heads = trace.layer_count(), trace.attention(0).query.shape[0]
    firsts = {
        (layer, head): row(trace, layer, head, back, open_keys)[0] for layer in range(layers) for head in range(heads)
    }
    layer, head = max(firsts, key=lambda place: firsts[place])
    last = mask("last", count, width)
    edited = run(MODEL, _text(scene), edits=(av.Allow(torch.tensor(last)),))
    before, after = row(trace, layer, head, back, open_keys), row(edited, layer, head, back, last[back])
    other = int((after - before).argmax())
    vectors = trace.attention(layer).value.detach().double().numpy()
    lengths = np.sqrt((vectors[head * len(vectors) // heads] ** 2).sum(axis=-1))
    return {
        **{name: _share(_mean(trace, name, width)) for name in ("all", "last", "sink")},
        "taken": _share(float(np.mean(list(firsts.values())))),
        "layer": str(layer),
        "head": str(head),
        "share": _share(before[0]),
        "before": _share(before[other]),
        "after": _share(after[other]),
        "width": str(width),
        "fewer": str(width - 1),
        "layers": str(layers),
        "reach": str(_reach(width, layers)),
        "value": f"It fetches little there: that value is {lengths[0]:.2f} long, and others "
        f"{lengths[1:].mean():.2f} on average.",
    }


def _reach(width: int, layers: int) -> int:
    """Walk back layer by layer to the oldest token seen."""
    at = 10_000
    for _ in range(layers):
        at = min(range(at - width + 1, at + 1))
    return 10_000 - at


def _share(value: float) -> str:
    return "<0.01" if 0 < value < 0.005 else f"{value:.2f}"


def values(scene: Scene, run: RunText) -> list[float]:
    trace, width = run(MODEL, _text(scene)), int(scene.choice or 8)
    return [_mean(trace, way, width) for way in ("last", "sink", "start")]


def numbers(scene: Scene, run: RunText) -> set[str]:
    """The three means."""
    return set(map(_share, values(scene, run)))
