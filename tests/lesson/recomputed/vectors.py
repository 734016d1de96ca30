"""Word vectors: cosines, products and the plane from the vectors that enter the first layer, in numpy."""

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText

MODEL = "all-MiniLM-L6-v2"
# The words of “The bank of the river was flooded”, which has a mark at each end, and the one that it opens on.
WORDS, BANK = range(1, 8), 2


def _vectors(scene: Scene, run: RunText) -> np.ndarray:
    x = run(MODEL, scene.text).layer(0).embeddings
    assert x is not None
    return x.detach().double().numpy()


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-0.00", "0.00").replace("-", "−")


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(sum(one * other) / (np.sqrt(sum(one**2)) * np.sqrt(sum(other**2))))


def _kept(x: np.ndarray) -> tuple[float, float]:
    """The share of the spread in the two directions with the largest eigenvalues: of all words, and of one."""
    words = np.stack([x[at] / np.sqrt((x[at] ** 2).sum()) for at in WORDS])
    centred = words - words.mean(axis=0)
    sizes, directions = np.linalg.eigh(centred.T @ centred)
    own = centred[list(WORDS).index(BANK)]
    flat = directions[:, -2:].T @ own
    return float(sizes[-2:].sum() / sizes.sum()), float((flat**2).sum() / (own**2).sum())


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1f} %"


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    x = _vectors(scene, run)
    alike = values(scene, run)
    best = [at for at in WORDS if at != BANK][alike.index(max(alike))]
    measure = np.dot if scene.choice == "dot" else _cosine
    closest = max(float(measure(x[i], x[j])) for i in WORDS for j in WORDS if i < j)
    return {
        "d_model": str(x.shape[1]),
        "numbers": ", ".join(_number(float(one)) for one in x[BANK][:3]),
        "tokens": str(len(x)),
        "product": _number(float(x[BANK] @ x[best])),
        "length": _number(float(np.linalg.norm(x[BANK]))),
        "other_length": _number(float(np.linalg.norm(x[best]))),
        "cosine": _number(max(alike)),
        "kept": _percent(_kept(x)[0]),
        "closest": _number(closest),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    x = _vectors(scene, run)
    return [_cosine(x[BANK], x[at]) for at in WORDS if at != BANK]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return {_percent(one) for one in _kept(_vectors(scene, run))} | {_number(max(values(scene, run)))}
