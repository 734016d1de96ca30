"""Many heads: what each reads, by changing one number of a word after the other."""

import numpy as np

from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.scratch.model import Scratch
from attention_viz.trace.splitting import split_words
from tests.lesson.recomputed import by_hand

D_MODEL = 8


def _heads(scene: Scene) -> int:
    return int(scene.choice or 2)


def _count(number: int, name: str) -> str:
    return f"{number} {name}" + ("s" if number != 1 else "")


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    heads = _heads(scene)
    scratch = Scratch(D_MODEL, heads, scene.seed)
    trace, words = scratch.trace(scene.text), split_words(scene.text)
    asked, query = by_hand.asked(scene, run)
    place = words.index(asked.query_tokens().texts[query])
    names = by_hand.numbered(words)
    found = dict[str, list[int]]()
    for head in range(heads):
        found.setdefault(names[int(by_hand.weights(trace, 0, head)[place].argmax())], []).append(head)
    named = [
        f"“{name}” (head{'s' if len(of) > 1 else ''} {', '.join(map(str, of))})" if heads > 1 else f"“{name}”"
        for name, of in found.items()
    ]
    matrices = [by_hand.array(one.weight) for one in scratch.projections().values()]
    return {
        "d_model": str(D_MODEL),
        "columns": str(matrices[-1].shape[1]),
        "rows": _count(len(words), "row"),
        "heads": _count(heads, "head"),
        "width": _count(D_MODEL // heads, "number"),
        "parameters": str(sum(one.size for one in matrices)),
        "favourites": ", ".join(named),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    """Move each number of a random vector alone, and count those that move a head's query."""
    heads = _heads(scene)
    matrix = by_hand.array(Scratch(D_MODEL, heads, scene.seed).projections()["query"].weight)
    before = np.arange(1.0, D_MODEL + 1)
    moved = np.stack([(before + one) @ matrix - before @ matrix for one in np.eye(D_MODEL)])
    read = [int((abs(part) > 1e-9).any(axis=1).sum()) for part in np.split(moved, heads, axis=1)]
    assert len(set(read)) == 1
    return [float(option == read[0]) for option in sorted({1, heads, D_MODEL // heads, D_MODEL})]


def numbers(scene: Scene, run: RunText) -> set[str]:
    heads = _heads(scene)
    return {str(one) for one in (1, heads, D_MODEL // heads, D_MODEL)}
