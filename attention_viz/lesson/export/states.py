"""Every state of a lesson that a reader can get to: its settings, its words, and both together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from attention_viz.lesson.export.figures import figure_data
from attention_viz.lesson.export.picture import has_few_words
from attention_viz.lesson.export.prose import lesson_tree
from attention_viz.lesson.lesson import Ask, Lesson, Shown
from attention_viz.lesson.question import how_to_guess, question_data
from attention_viz.lesson.scene import Scene

__all__ = ["LessonStates", "lesson_states"]


@dataclass(frozen=True)
class LessonStates:
    """A lesson's states by key ("choice|word"), its first question, and the number of missing states."""

    question: dict[str, Any]
    states: dict[str, object]
    left_out: int


@dataclass(frozen=True)
class _Wish:
    choice: str = ""
    word: int | None = None

    @property
    def key(self) -> str:
        """The name of the state."""
        return f"{self.choice}|{'' if self.word is None else self.word}"


def lesson_states(name: str, lesson: Lesson, scene: Scene, begin: Ask, most: int) -> LessonStates:
    """Compute at most `most` states, those that take one press first; the scene's own question is `begin`."""
    question = {**_question(begin, shown=False), "how": how_to_guess(lesson, begin)}
    states, waiting = dict[str, object](), [_Wish()]
    seen = set(waiting)
    while waiting and len(states) < most:
        wish = waiting.pop(0)
        one = replace(scene, choice=wish.choice, word=wish.word)
        ask, light = begin if wish == _Wish() else lesson.ask(one), lesson.show(one)
        dark = light if ask.complete else lesson.show(replace(one, theme="dark"))
        states[wish.key] = _state(name, lesson, one, ask, (light, dark), guessed=wish == _Wish())
        for after in _after(lesson, one, wish, ask, light):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return LessonStates(question, states, len(waiting))


def _question(ask: Ask, *, shown: bool) -> dict[str, Any]:
    return {
        "heading": ask.finding if shown else ask.question,
        "source": ask.source,
        "premise": ask.premise,
        "drawn": ask.drawn,
        "text": "" if ask.place is None else ask.place.text.strip(),
        "data": question_data(ask, shown=shown),
    }


def _state(
    name: str, lesson: Lesson, scene: Scene, ask: Ask, shown: tuple[Shown, Shown], *, guessed: bool
) -> dict[str, object]:
    """Return a state; replies to guesses belong to the one that is `guessed`."""
    light, dark = shown
    answer = _question(ask, shown=True)
    if not guessed:
        answer["data"]["truth"]["replies"] = []
    words, asking = lesson.words(scene) if lesson.words else ({}, "")
    return {
        "answer": answer,
        "pressed": list(ask.pressed),
        "pressesWord": ask.word,
        "choice": lesson.control.value(scene),
        "options": [[value, label] for value, label in lesson.control.options(scene).items()],
        "words": [[value, label] for value, label in words.items()],
        "asking": asking,
        "says": light.says,
        "figure": None if ask.complete else figure_data(light, dark, few=has_few_words(scene)),
        "drawn": light.drawn,
        "text": lesson_tree(name, dict(light.facts), scene.notation),
    }


def _after(lesson: Lesson, scene: Scene, wish: _Wish, ask: Ask, shown: Shown) -> Iterator[_Wish]:
    """Yield the states that one press leads to."""
    for option in lesson.control.options(scene):
        yield replace(wish, choice=option)
    words = list(lesson.words(scene)[0]) if lesson.words else []
    words += [one for one in ask.pressed if one] if ask.word else []
    words += [] if lesson.control.words else [spot.option for spot in shown.spots]
    for word in words:
        yield replace(wish, word=int(word))
    if not ask.word:
        for option in filter(None, ask.pressed):
            yield replace(wish, choice=option)
