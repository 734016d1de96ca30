"""In practice: each way to compute the same, worked out in numpy."""

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from tests.lesson.recomputed import by_hand

TOKENS, WIDTH, BLOCK = 512, 64, 64


def _vectors() -> by_hand.Array:
    return np.random.default_rng(0).standard_normal((TOKENS, WIDTH)).astype(np.float32)


def _attention(x: by_hand.Array) -> by_hand.Array:
    return by_hand.softmax(x @ x.T / np.float32(WIDTH**0.5)) @ x


def _blockwise(x: by_hand.Array) -> by_hand.Array:
    """By shares of each block's own softmax, weighed by the blocks' sums."""
    rows = []
    for asking in np.split(x, TOKENS // BLOCK):
        blocks = [asking @ key.T / np.float32(WIDTH**0.5) for key in np.split(x, TOKENS // BLOCK)]
        most = np.max([one.max(axis=1) for one in blocks], axis=0)
        sums = np.array([np.exp(one - most[:, None]).sum(axis=1) for one in blocks])
        parts = [by_hand.softmax(one) @ value for one, value in zip(blocks, np.split(x, TOKENS // BLOCK), strict=True)]
        rows.append(sum(part * (own / sums.sum(axis=0))[:, None] for part, own in zip(parts, sums, strict=True)))
    return np.concatenate(rows)


def _two_bytes(x: by_hand.Array) -> by_hand.Array:
    """Numbers with the lower half of their bits cut off."""
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _apart(name: str) -> float:
    x = _vectors()
    whole = _attention(x)
    if name == "fused":
        w = np.random.default_rng(1).standard_normal((WIDTH, 3 * WIDTH)).astype(np.float32)
        whole, other = np.concatenate([x @ one for one in np.split(w, 3, axis=1)], axis=1), x @ w
    elif name == "checkpointing":
        other = _attention(x)  # the same numbers, computed a second time
    else:
        other = _blockwise(x) if name == "blockwise" else _attention(_two_bytes(x))
    return float(abs(whole - other).max() / abs(whole).max())


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    return {}


def values(scene: Scene, run: RunText) -> list[float]:
    apart = _apart(scene.choice or "blockwise")
    return [float(apart < 1e-5), float(1e-5 <= apart < 0.05), float(apart >= 0.05)]
