"""Cost: twice the words, four times the weights; and four measured ways to save work."""

import math

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.measuring import LENGTHS, WIDTH, practice, seconds_by_length
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import grouped, translate
from attention_viz.views import before_after, cost
from attention_viz.views.style.wording import share_text

_BYTES = 4
_NAMED = (512, 2048)
# About as many tokens as a novel has.
_NOVEL = 100_000


def _ask_cost(_: Scene) -> Ask:
    n = grouped(_NOVEL)
    sizes = {
        _NOVEL * _BYTES: f"{n} × {_BYTES}",
        _NOVEL * WIDTH * _BYTES: f"{n} × {WIDTH} × {_BYTES}",
        _NOVEL**2 * _BYTES: f"{n}² × {_BYTES}",
    }
    found = max(sizes)
    return Ask(
        translate("A novel has about {n} tokens. How much memory do all weights of one head need?", n=n),
        translate("{n} tokens: {room} for the weights of one head", n=n, room=_room(found)),
        translate("counted, not measured"),
        tuple(map(_room, sizes)),
        tuple(float(one == found) for one in sizes),
        shown=tuple(sizes.values()),
        premise=translate("Each weight takes {bytes} bytes.", bytes=_BYTES),
        reasons=(
            translate("That is one weight for each token; but each token has one for every token."),
            translate("That is {width} numbers for each token, as its key has; weights belong to pairs.", width=WIDTH),
            "",
        ),
    )


def _show_cost(scene: Scene) -> Shown:
    length = int(_CONTROL_COST.value(scene))
    measured = seconds_by_length()
    short, long = _NAMED
    facts = {
        "width": str(WIDTH),
        "equal": f"{3 * WIDTH // 2}",
        "tokens": grouped(length),
        "weights": grouped(length**2),
        "room": _room(length**2 * _BYTES),
        "milliseconds": grouped(1000 * measured[length], ",.2f"),
        "short": grouped(short),
        "short_weights": grouped(short**2),
        "long": grouped(long),
        "long_weights": grouped(long**2),
        "times": f"{measured[long] / measured[short]:.1f}",
        "formula_times": f"{long**2 // short**2}",
    }
    says = translate(
        "{tokens} tokens took {milliseconds} ms on the machine that made this page, for {weights} weights.",
        **{name: facts[name] for name in ("tokens", "milliseconds", "weights")},
    )
    figure = cost(measured, chosen=length, theme=scene.theme)
    _ = figure.update_traces({"name": "measured"}, {"name": "measured here"})
    return Shown(facts, figure, says)


def _room(size: int) -> str:
    if size >= 10**9:
        return translate("{size} gigabytes", size=f"{size / 10**9:.3g}")
    if size >= 10**6:
        return translate("{size} megabytes", size=f"{size / 10**6:.3g}")
    return translate("{size} kilobytes", size=f"{size / 10**3:.3g}")


_CONTROL_COST = Control(
    "Tokens", lambda scene: {str(length): grouped(length) for length in LENGTHS}, lambda scene: "512"
)


# Results that differ by less are the same but for rounding; by more, another result.
_ROUNDING, _OTHER = 1e-5, 0.05
# From here on, percents say it.
_SEEN = 0.001
_OPTIONS = {
    "fused": "fused projection",
    "blockwise": "blockwise attention",
    "checkpointing": "gradient checkpointing",
    "mixed precision": "mixed precision",
}
_WHAT = {
    "fused": "One matrix makes queries, keys and values together, and the result is split in three.",
    "blockwise": "Weights are computed block by block and never all stored.",
    "checkpointing": "Numbers that training needs on the way back aren't stored but computed a second time.",
    "mixed precision": "Numbers take two bytes instead of four, so they are rounded to two or three digits.",
}
_QUESTIONS = {
    "fused": "One product with a matrix takes the place of three. How far off is the output?",
    "blockwise": "A softmax divides by the sum of a whole row, which blocks never see. How far off is the output?",
    "checkpointing": "Training computes numbers again that it didn't store. How far off are its gradients?",
    "mixed precision": "Each number takes two bytes in place of four. How far off is the output?",
}
_FINDINGS = {
    "fused": "Fused projection: the same numbers, in {after} milliseconds instead of {before}",
    "blockwise": "Blockwise attention: the same output, with {after} weights in memory instead of {before}",
    "checkpointing": "Gradient checkpointing: the same gradients, with {after} megabytes kept instead of {before}",
    "mixed precision": "Mixed precision: an output a little off, with {after} megabytes instead of {before}",
}


# By option; none for the right one.
_REASONS = {
    "fused": ("", *["Side by side, the matrices make the same numbers as each alone."] * 2),
    "blockwise": ("", *["Blocks carry their sums along, so that the end is divided by that of the whole row."] * 2),
    "checkpointing": ("", *["The same computation gives the same numbers, up to rounding."] * 2),
    "mixed precision": (
        "Two bytes hold two or three digits, so the result differs further.",
        "",
        "Each number keeps two or three digits, so the result is off by little.",
    ),
}


def _ask_practice(scene: Scene) -> Ask:
    name = _CONTROL_PRACTICE.value(scene)
    measured = practice(name)
    found = 0 if measured.apart < _ROUNDING else 1 if measured.apart < _OTHER else 2
    options = (
        translate("less than {percent} %", percent=_percent(_ROUNDING)),
        translate("{low} to {high} %", low=_percent(_ROUNDING), high=_percent(_OTHER)),
        translate("more than {percent} %", percent=_percent(_OTHER)),
    )
    return Ask(
        translate(_QUESTIONS[name]),
        translate(_FINDINGS[name], before=_number(measured.before), after=_number(measured.after)),
        translate("measured: the largest difference, divided by the largest number"),
        options,
        tuple(float(at == found) for at in range(len(options))),
        shown=tuple(_part(measured.apart) if at == found else "" for at in range(len(options))),
        premise=translate(_WHAT[name]),
        reasons=tuple(map(translate, _REASONS[name])) if found == _REASONS[name].index("") else (),
    )


def _show_practice(scene: Scene) -> Shown:
    name = _CONTROL_PRACTICE.value(scene)
    measured = practice(name)
    facts = {
        "name": _capital(translate(_OPTIONS[name])),
        "what": translate(_WHAT[name]),
        "before": _number(measured.before),
        "after": _number(measured.after),
        "unit": translate(measured.unit),
        "ratio": f"{measured.before / measured.after:.1f}".removesuffix(".0"),
        "apart": _apart(measured.apart),
    }
    says = translate(
        "{name}: {before} {unit} before, {after} after.",
        **{fact: facts[fact] for fact in ("name", "before", "unit", "after")},
    )
    figure = before_after(measured.before, measured.after, translate(measured.unit), theme=scene.theme)
    return Shown(facts, figure, says)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _number(number: float) -> str:
    return grouped(number, ",.0f") if number >= 1000 else f"{number:.3g}"


def _percent(part: float) -> str:
    return f"{100 * part:g}"


def _part(apart: float) -> str:
    if apart >= _SEEN or not apart:
        return share_text(apart)
    return f"<{100 / _power(apart):g} %"


def _power(apart: float) -> int:
    """Return the power of ten that a part of 1 is smaller than, as in one part in 1,000."""
    return 10 ** int(-math.log10(apart))


def _apart(apart: float) -> str:
    if not apart:
        return translate("The two results are identical.")
    return translate(
        "The two results differ by less than one part in {count} of the largest number.", count=grouped(_power(apart))
    )


def _practices(_: Scene) -> dict[str, str]:
    return {name: translate(label) for name, label in _OPTIONS.items()}


_CONTROL_PRACTICE = Control("Practice", _practices, lambda scene: "blockwise")

LESSONS = {
    "cost": Lesson(
        "What it costs",
        5,
        _ask_cost,
        _show_cost,
        _CONTROL_COST,
        "cost",
        idea=(
            "A simple program stores all weights of a head at once. Memory is counted in bytes: a million are a "
            "megabyte, a thousand megabytes a gigabyte."
        ),
    ),
    "practice": Lesson(
        "In practice",
        7,
        _ask_practice,
        _show_practice,
        _CONTROL_PRACTICE,
        "memory",
        idea=(
            "Attention is a formula, and there are several ways to compute it. They differ in time and memory. Do they "
            "differ in the result? All round their numbers, so the last digit can always differ."
        ),
    ),
}
