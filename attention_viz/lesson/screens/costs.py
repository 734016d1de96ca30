"""Cost: twice the words, four times the weights; and four measured ways to save work."""

import math

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.measuring import LENGTHS, WIDTH, practice, seconds_by_length
from attention_viz.lesson.scene import Scene
from attention_viz.views import before_after, cost

_BYTES = 4
_NAMED = (512, 2048)


def _ask_cost(_: Scene) -> Ask:
    few, long = _NAMED
    times = long // few
    options = (times, times * 2, times**2)
    found = long**2 // few**2
    return Ask(
        f"A text {times} times as long: how many times the weights?",
        f"{times} times the words, {found} times the weights",
        f"counted: {few:,}² and {long:,}² weights per head",
        tuple(f"{one} times" for one in options),
        tuple(float(one == found) for one in options),
        shown=tuple(f"{long**2:,} weights" if one == found else "" for one in options),
    )


def _show_cost(scene: Scene) -> Shown:
    length = int(_CONTROL_COST.value(scene))
    measured = seconds_by_length()
    short, long = _NAMED
    facts = {
        "width": str(WIDTH),
        "tokens": f"{length:,}",
        "weights": f"{length**2:,}",
        "room": _room(length**2 * _BYTES),
        "milliseconds": f"{1000 * measured[length]:,.2f}",
        "short": f"{short:,}",
        "short_weights": f"{short**2:,}",
        "long": f"{long:,}",
        "long_weights": f"{long**2:,}",
        "times": f"{measured[long] / measured[short]:.1f}",
        "formula_times": f"{long**2 / short**2:.0f}",
    }
    says = f"{facts['tokens']} tokens took {facts['milliseconds']} ms on this machine, for {facts['weights']} weights."
    return Shown(facts, cost(measured, chosen=length, theme=scene.theme), says)


def _room(size: int) -> str:
    return f"{size / 1e6:,.1f} megabytes" if size >= 1e6 else f"{size / 1e3:,.1f} kilobytes"


_CONTROL_COST = Control("Tokens", lambda scene: {str(length): f"{length:,}" for length in LENGTHS}, lambda scene: "512")


# Factors from which a saving counts as some or as much.
_SOME, _MUCH = 2, 10
_OPTIONS = {
    "fused": "fused projection",
    "blockwise": "blockwise attention",
    "checkpointing": "gradient checkpointing",
    "mixed precision": "mixed precision",
}
_WHAT = {
    "fused": "One matrix makes queries, keys and values together, and the result is split in three.",
    "blockwise": "Weights are computed block by block and never all stored; each row has a running sum.",
    "checkpointing": "Numbers that training needs on the way back aren't stored but computed a second time.",
    "mixed precision": "Numbers take two bytes instead of four, so they are rounded a little.",
}


def _ask_practice(scene: Scene) -> Ask:
    name = _CONTROL_PRACTICE.value(scene)
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


def _show_practice(scene: Scene) -> Shown:
    name = _CONTROL_PRACTICE.value(scene)
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


_CONTROL_PRACTICE = Control("Practice", lambda scene: _OPTIONS, lambda scene: "blockwise")

LESSONS = {
    "cost": Lesson("What it costs", 5, _ask_cost, _show_cost, _CONTROL_COST, "cost"),
    "practice": Lesson("In practice", 7, _ask_practice, _show_practice, _CONTROL_PRACTICE, "memory"),
}
