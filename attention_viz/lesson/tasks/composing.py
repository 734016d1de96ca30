"""Tasks about a score's parts."""

from attention_viz.lesson.composed import TOY_WORDS, Composed
from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip, written
from attention_viz.lesson.language import TOY
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import ROUNDED, Draw, factor, table

__all__ = ["part"]

_DIGITS = 2


def part(scene: Scene, seed: int) -> Exercise:
    """Ask for an earlier head's part of a score, from the rest."""
    draw = Draw("part", seed, TOY)
    words = draw.order(TOY_WORDS)
    pair = Composed(scene, draw.below(len(words) - 1), words=tuple(words))
    names = pair.trace.key_tokens().written
    (layer, head), (before_layer, before_head) = pair.reader, pair.writer
    asked = ("head", before_layer, before_head)
    others: dict[str, float] = {}
    for place, number in pair.parts.items():
        if place != asked:
            others[_called(*place)] = others.get(_called(*place), 0.0) + number
    rows = {name: round(number, _DIGITS) for name, number in others.items()}
    score = round(pair.opened.total, _DIGITS)
    rest = round(sum(rows.values()), _DIGITS)
    right = round(score - rest, _DIGITS)
    added = " + ".join(factor(number) for number in rows.values())
    return Exercise(
        "part",
        f"“{names[pair.query]}” comes again in “{' '.join(words * 2)}”. Its score with “{names[pair.key]}” in layer "
        f"{layer}, head {head} of the toy is {written(score)}: the sum of these and of what head {before_head} of "
        f"layer {before_layer} wrote into the key. What did that head write?",
        (table("Parts of the score", [*rows], ("wrote",), [[number] for number in rows.values()]),),
        NumberAnswer(right, ROUNDED),
        (
            "All parts together are the score: one is missing.",
            f"Those that are given come to {written(rest)}.",
            f"Take {written(rest)} away from {written(score)}.",
        ),
        f"{written(score)} − ({added}) = {written(score)} − {factor(rest)} = {written(right)}.",
        (
            Slip(rest, "that is what the other parts wrote together; take it away from the score."),
            Slip(round(score + rest, _DIGITS), "the other parts were added to the score; take them away from it."),
            Slip(score, "that is the whole score; the other parts wrote some of it."),
        ),
    )


def _called(kind: str, layer: int | None, _head: int | None) -> str:
    if kind == "head":
        return f"layer {layer}, its other heads"
    return {"embedding": "the word itself", "mlp": f"layer {layer}, MLP"}.get(kind, "all else")
