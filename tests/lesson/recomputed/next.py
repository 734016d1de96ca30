"""The numbers of *The next word*, from the logits that plain transformers puts out."""

import math

from torch import Tensor

from attention_viz.lesson.language import LANGUAGE_MODEL
from attention_viz.lesson.scene import RunText, Scene
from tests.lesson.recomputed.around import passed, words_of


def _best(scene: Scene) -> tuple[Tensor, list[int]]:
    """Return all logits after the text, and the five largest ones' tokens."""
    logits = passed(scene.text, -1).logits.double()
    return logits, sorted(range(len(logits)), key=lambda at: -float(logits[at]))[:5]


def _rival(logits: Tensor, best: list[int]) -> int:
    """Return the token of the five whose logit is nearest to two below the largest."""
    first, *others = best
    return min(others, key=lambda at: abs(float(logits[first]) - 2 - float(logits[at])))


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    """Return the logits of both tokens, their ratio, and the probabilities at the chosen temperature."""
    del run
    (logits, best), t = _best(scene), float(scene.choice or 1)
    first, other = best[0], _rival(*_best(scene))
    powers = [math.exp(one / t) for one in logits.tolist()]
    chances = [powers[at] / sum(powers) for at in best]
    usual = logits.exp() / logits.exp().sum()
    return {
        "model": LANGUAGE_MODEL,
        "best": words_of([first])[0],
        "other": words_of([other])[0],
        "temperature": f"{t:g}",
        "vocabulary": f"{len(logits):,}",
        "count": "5",
        "high": f"{float(logits[first]):.2f}",
        "low": f"{float(logits[other]):.2f}",
        "difference": f"{float(logits[first] - logits[other]):.2f}",
        "times": _times(float(usual[first] / usual[other])),
        "ratio": _times(powers[first] / powers[other]),
        "likely": _share(float(usual[first])),
        "chance": _share(chances[0]),
        "together": _share(sum(chances)),
        "rest": _share(sum(powers[at] for at in range(len(powers)) if at not in best) / sum(powers)),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    """Mark the ratio of both probabilities among what slips give: sorted, each once."""
    del run
    logits, best = _best(scene)
    high, low = float(logits[best[0]]), float(logits[_rival(logits, best)])
    chances = logits.softmax(dim=0)
    right = _times(float(chances[best[0]] / chances[_rival(logits, best)]))
    slips = {_times(one) for one in (high / low, high - low, math.e * (high - low))}
    return [float(one == right) for one in sorted({*slips, right}, key=float)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    """No others."""
    del scene, run
    return set()


def _times(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{float(f'{number:.2g}'):.0f}"


def _share(number: float) -> str:
    return "<0.01" if 0 < number < 0.005 else f"{number:.2f}"
