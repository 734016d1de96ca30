"""A task with a sound: find the time a word begins."""

import itertools
from collections.abc import Sequence

from attention_viz.lesson.exercise import Exercise, OptionAnswer, Slip, written
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen.heard import MODEL, SoundRun
from attention_viz.lesson.tasks.drawing import Draw, table

__all__ = ["MODEL", "stretch"]

_DIGITS, _PARTS = 2, 6


def stretch(scene: Scene, seed: int) -> Exercise:
    """Ask for the second word's start that keeps most weight in both words' stretches."""
    draw, heard = Draw("stretch", seed, MODEL), SoundRun(scene)
    layer, head = heard.place
    first = draw.below(len(heard.words) - 1)
    (start, _), (_, end) = heard.times[first], heard.times[first + 1]
    edges = [start + (end - start) * at / _PARTS for at in range(_PARTS + 1)]
    rows = [
        [
            round(float(heard.rows[word][(heard.begins >= low) & (heard.begins < high)].sum()), _DIGITS)
            for low, high in itertools.pairwise(edges)
        ]
        for word in (first, first + 1)
    ]
    names = tuple(f"“{heard.words[word]}”" for word in (first, first + 1))
    columns = tuple(f"{edge:.2f}" for edge in edges[:-1])
    begins = tuple(f"{second} s" for second in columns)
    gains = [round(_gain(rows, at), _DIGITS) for at in range(1, _PARTS)]
    most = max(gains)
    right = frozenset(at for at, gain in enumerate(gains) if gain == most)
    heaviest = max(range(1, _PARTS), key=lambda at: rows[1][at]) - 1
    middle = _PARTS // 2 - 1
    found = min(right)
    return Exercise(
        "stretch",
        f"{MODEL} writes {names[0]} and then {names[1]}. Here is what layer {layer}, head {head} gives to six moments "
        f"before each. All moments up to some point belong to {names[0]}, all others to {names[1]}. When does "
        f"{names[1]} begin, so that as much weight as possible lies in each word’s own part?",
        (table("Weights, by the second at which each moment begins", names, columns, rows),),
        OptionAnswer(begins[1:], right),
        (
            f"For each point add what {names[0]} has before it and what {names[1]} has from it on.",
            f"With {begins[1]} the sum is {written(gains[0])}.",
            f"The largest sum is {written(most)}.",
        ),
        f"With {begins[found + 1]} the sum is {written(most)}; the others have "
        f"{', '.join(written(gain) for at, gain in enumerate(gains) if at not in right) or 'as much'}.",
        tuple(
            Slip(at, words)
            for at, words in {
                heaviest: f"there {names[1]} has its largest weight; what {names[0]} loses counts, too.",
                middle: "that is the middle of the time; the weights say otherwise.",
            }.items()
            if at not in right
        ),
    )


def _gain(rows: Sequence[Sequence[float]], at: int) -> float:
    return sum(rows[0][:at]) + sum(rows[1][at:])
