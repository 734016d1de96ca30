"""A lesson's opening question, guessed on bars that then show the truth."""

import re
import zlib
from collections.abc import Callable

from streamlit.components import v2 as components

from attention_viz.explorer import prediction_source
from attention_viz.lesson import Ask
from attention_viz.ui import widgets

__all__ = ["SHOWN", "named", "read_guess", "show_question"]

# Instead of a guess in the address: shown without one.
SHOWN = "shown"

_KEY = "learn-predict"
_GUESS = re.compile(r"shown|\d{1,3}(\.\d{1,3})*")
_PERCENT = 100
_WORDS = {
    "bars": "A bar for each",
    "show": "Show the answer",
    "skip": "Skip the guess",
    "guess": "your guess",
    "asks": "choose it",
}

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = prediction_source()
_prediction = components.component("attention_viz_prediction", html=_html, css=_css, js=_js)


def read_guess(ask: Ask, text: str) -> tuple[float, ...] | None:
    """Read a guess: shares, or 1 for a named option; None if missing or invalid."""
    parts, count = text.split("."), len(ask.options)
    if not all(re.fullmatch(r"\d{1,3}", part) for part in parts):
        return None
    numbers = [int(part) for part in parts]
    if ask.shares:
        return tuple(one / _PERCENT for one in numbers) if len(numbers) == count and sum(numbers) == _PERCENT else None
    if len(numbers) != 1 or numbers[0] >= count:
        return None
    return tuple(float(at == numbers[0]) for at in range(count))


def named(guess: tuple[float, ...]) -> int:
    """The option that a guess gives most."""
    return max(range(len(guess)), key=guess.__getitem__)


def show_question(
    ask: Ask,
    name: str,
    guess: tuple[float, ...] | None,
    *,
    shown: bool,
    on_guess: Callable[[str], None],
    on_press: Callable[[int], None],
) -> None:
    """Draw the bars and handle the guess."""
    question_key = repr((name, ask.question, ask.options, shown))
    truth = {"lengths": ask.lengths, "written": ask.written, "right": sorted(ask.right)} if shown else None
    question = {
        "id": f"{zlib.crc32(question_key.encode('utf-8', 'replace'))}",
        "options": ask.options,
        "shares": ask.shares,
        "query": ask.query,
        "pressed": [bool(one) for one in ask.pressed] or [False] * len(ask.options),
        "guess": guess,
        "truth": truth,
        "source": ask.source,
        "words": _WORDS,
    }

    def guessed() -> None:
        text = widgets.sent(_KEY, "guess")
        # Anything can come from a browser.
        if isinstance(text, str) and _GUESS.fullmatch(text):
            on_guess(text)

    def pressed() -> None:
        place = widgets.sent(_KEY, "press")
        if type(place) is int and 0 <= place < len(ask.pressed) and ask.pressed[place]:
            on_press(place)

    _prediction(key=_KEY, data=question, height="content", on_guess_change=guessed, on_press_change=pressed)
