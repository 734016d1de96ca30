"""Cost: twice the words, four times the weights; measured on this machine."""

from attention_viz.lesson.asking import Ask
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.measuring import LENGTHS, WIDTH, seconds_by_length
from attention_viz.lesson.scene import Scene
from attention_viz.views import cost

__all__ = ["LESSON"]

_BYTES = 4
_NAMED = (512, 2048)


def _ask(_: Scene) -> Ask:
    few, long = _NAMED
    times = long // few
    options = (times, times * 2, times**2)
    found = long**2 // few**2
    return Ask(
        f"A text {times} times as long: how many times the weights?",
        f"{times} times the words, {found} times the weights",
        f"counted: {few:,}² and {long:,}² weights a head",
        tuple(f"{one} times" for one in options),
        tuple(float(one == found) for one in options),
        shown=tuple(f"{long**2:,} weights" if one == found else "" for one in options),
    )


def _show(scene: Scene) -> Shown:
    length = int(_CONTROL.value(scene))
    measured = seconds_by_length()
    short, long = _NAMED
    facts = {
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
        "width": str(WIDTH),
    }
    says = f"{facts['tokens']} tokens took {facts['milliseconds']} ms on this machine, for {facts['weights']} weights."
    return Shown(facts, cost(measured, chosen=length, theme=scene.theme), says)


def _room(size: int) -> str:
    return f"{size / 1e6:,.1f} megabytes" if size >= 1e6 else f"{size / 1e3:,.1f} kilobytes"


_CONTROL = Control("Tokens", lambda scene: {str(length): f"{length:,}" for length in LENGTHS}, lambda scene: "512")

LESSON = Lesson(
    "What it costs",
    5,
    _ask,
    _show,
    _CONTROL,
    "cost",
    covers=("cost: n² weights, 512 and 2,048 tokens, measured beside the formula",),
)
