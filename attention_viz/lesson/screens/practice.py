"""Practice: four ways to save work, each measured before and after."""

import math

from attention_viz.lesson.asking import Ask
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.measuring import practice
from attention_viz.lesson.scene import Scene
from attention_viz.views import before_after

__all__ = ["LESSON"]

# How many times less something has to be, to be some or much.
_SOME, _MUCH = 2, 10
_OPTIONS = {
    "fused": "fused projection",
    "blockwise": "blockwise attention",
    "checkpointing": "gradient checkpointing",
    "mixed precision": "mixed precision",
}
_WHAT = {
    "fused": "One matrix makes queries, keys and values together, and the result is split in three.",
    "blockwise": "Weights are made block by block and never all stored; the sum of each row is kept up to date.",
    "checkpointing": "What training needs on the way back isn't kept but computed a second time.",
    "mixed precision": "Numbers take two bytes instead of four, and are a little rounded.",
}


def _ask(scene: Scene) -> Ask:
    name = _CONTROL.value(scene)
    measured = practice(name)
    ratio = measured.before / measured.after
    found = 0 if ratio < _SOME else 1 if ratio <= _MUCH else 2
    options = (f"less than {_SOME} times", f"{_SOME} to {_MUCH} times", f"more than {_MUCH} times")
    return Ask(
        f"{_OPTIONS[name].capitalize()}: by what factor do {measured.unit} shrink?",
        f"{_OPTIONS[name].capitalize()}: {measured.unit} shrink by a factor of {ratio:.1f}",
        "measured here, before and after",
        options,
        tuple(float(at == found) for at in range(len(options))),
        shown=tuple(f"{ratio:.1f} times" if at == found else "" for at in range(len(options))),
    )


def _show(scene: Scene) -> Shown:
    name = _CONTROL.value(scene)
    measured = practice(name)
    facts = {
        "name": _OPTIONS[name],
        "what": _WHAT[name],
        "before": _number(measured.before),
        "after": _number(measured.after),
        "unit": measured.unit,
        "ratio": f"{measured.before / measured.after:.1f}",
        "apart": _apart(measured.apart),
    }
    says = f"{_OPTIONS[name].capitalize()}: {facts['before']} {measured.unit} before, {facts['after']} after."
    return Shown(facts, before_after(measured.before, measured.after, measured.unit, theme=scene.theme), says)


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def _apart(part: float) -> str:
    if not part:
        return "are identical"
    return f"differ by less than one part in {10 ** int(-math.log10(part)):,} of the largest number"


_CONTROL = Control("Practice", lambda scene: _OPTIONS, lambda scene: "blockwise")

LESSON = Lesson(
    "In practice",
    7,
    _ask,
    _show,
    _CONTROL,
    "memory",
    covers=(
        "practice: fused projection, flash attention, gradient checkpointing, mixed precision",
        "fused projection shown equal to the unfused one",
    ),
)
