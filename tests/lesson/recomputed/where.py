"""Where in the picture: the head's rows from its queries and keys, added up over places by their middles."""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np

import attention_viz as av
from attention_viz.inputs.media.shapes import DRAWN
from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace
from tests.lesson.recomputed import by_hand

MODEL, SAMPLE, ASKED = "shapes", "shapes-four", "circle"
FOLDER = Path(av.__file__).parent / "sources" / "trained" / "shapes"
ROWS, COLUMNS, SIDE = ("top", "middle", "bottom"), ("left", "centre", "right"), 8
WORDS = ("what", "colour", "is", "the", "{}", "?")


@cache
def _head() -> tuple[int, int]:
    figures = json.loads((FOLDER / "figures.json").read_text("utf-8"))
    return figures["head_layer"], figures["head"]


def _near() -> list[int]:
    """For each patch in a row, the third whose shape's middle is nearest."""
    return [min(range(3), key=lambda third: abs(8 * at + 4 - (10.5, 32, 53.5)[third])) for at in range(SIDE)]


def _place(third: int) -> by_hand.Array:
    near, (down, across) = np.array(_near()), divmod(third, 3)
    return (near == down)[:, None] & (near == across)[None, :]


def _names() -> list[str]:
    return [f"{row} {column}" for row in ROWS for column in COLUMNS]


def _question(run: RunText, sample: str, shape: str, hidden: int | None = None) -> Trace:
    edits: tuple[av.Allow, ...] = ()
    if hidden is not None:
        allowed = np.ones((SIDE**2 + 1 + len(WORDS),) * 2, dtype=bool)
        allowed[SIDE**2 + 1 :, 1 : SIDE**2 + 1] = ~_place(hidden).flatten()
        allowed[0, 1 : SIDE**2 + 1] = ~_place(hidden).flatten()
        edits = (av.Allow(__import__("torch").from_numpy(allowed), stream="decoder"),)
    return run(MODEL, " ".join(WORDS).format(shape), picture=sample, edits=edits)


def _row(trace: Trace, word: int, hidden: int | None = None) -> by_hand.Array:
    """A word's weights, over the beginning, the patches and the words up to itself."""
    layer, head = _head()
    call = trace.attention(layer, "decoder")
    query, key = by_hand.array(call.query), by_hand.array(call.key)
    at = SIDE**2 + 1 + word
    scores = key[head * len(key) // len(query)] @ query[head, at] / math.sqrt(query.shape[-1])
    scores[at + 1 :] = -math.inf
    if hidden is not None:
        scores[1 : SIDE**2 + 1][_place(hidden).flatten()] = -math.inf
    return by_hand.softmax(scores)


def _patches(row: by_hand.Array) -> by_hand.Array:
    return row[1 : SIDE**2 + 1].reshape(SIDE, SIDE)


def _likely(trace: Trace) -> dict[str, float]:
    words = json.loads((FOLDER / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    logits = by_hand.array(trace.output)[-1]
    shares = by_hand.softmax(logits)
    return {word: float(shares[number]) for word, number in words.items()}


def _answer(run: RunText, hidden: int | None = None) -> tuple[str, float]:
    likely = _likely(_question(run, SAMPLE, ASKED, hidden))
    best = max(likely, key=likely.__getitem__)
    return best, likely[best]


def _hidden(scene: Scene) -> int | None:
    return int(scene.choice) if scene.choice.isdigit() else None


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    hits, count, chance = dict.fromkeys(("the", "name", "?"), 0), 0, 0.0
    for sample, shapes in DRAWN.items():
        kinds = [one.shape for one in shapes]
        for one in (one for one in shapes if kinds.count(one.shape) == 1):
            trace, its = _question(run, sample, one.shape), _place(_names().index(one.place))
            count, chance = count + 1, chance + 1 / len(shapes)
            for word, name in zip((3, 4, 5), hits, strict=True):
                patches = _patches(_row(trace, word))
                hits[name] += bool(its[np.unravel_index(patches.argmax(), patches.shape)])
    trace = _question(run, SAMPLE, ASKED)
    its = _place(_names().index(next(one.place for one in DRAWN[SAMPLE] if one.shape == ASKED)))
    own, last = (float(_patches(_row(trace, word))[its].sum()) for word in (4, 5))
    return {
        "layer": str(_head()[0]),
        "head": str(_head()[1]),
        "patches": str(SIDE**2),
        "count": str(count),
        "samples": str(len(DRAWN)),
        "chance": by_hand.number(chance, 1),
        "article_hits": str(hits["the"]),
        "name_hits": str(hits["name"]),
        "last_hits": str(hits["?"]),
        "own": by_hand.share(own),
        "last": by_hand.share(last),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    row = _patches(_row(_question(run, SAMPLE, ASKED, _hidden(scene)), 5, _hidden(scene)))
    found = [float(row[_place(third)].sum()) for third in range(9)]
    return [*found, 1 - sum(found)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    return {by_hand.share(max(values(scene, run))), by_hand.share(_answer(run, _hidden(scene))[1])}
