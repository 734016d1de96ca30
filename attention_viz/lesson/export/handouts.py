"""Lessons on paper: a handout, a worksheet to fill in, and the answers, as one file to print from a browser."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.course import EXERCISES, LESSONS, check_lessons, given
from attention_viz.lesson.exercise import Exercise, OptionAnswer
from attention_viz.lesson.export.figures import plotly_data
from attention_viz.lesson.export.packed import script_json
from attention_viz.lesson.export.picture import asked_image
from attention_viz.lesson.export.prose import lesson_html
from attention_viz.lesson.formulas import mathml, words_and_symbols
from attention_viz.lesson.lesson import Ask, Lesson
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import current_language, translate
from attention_viz.views.export.browser_script import PLOTLY_SCRIPT

__all__ = ["PAPERS", "paper"]

# More options are places of an image, marked there.
_MOST_OPTIONS = 30
# What can be printed, by name: the title in English.
PAPERS = {"handout": "Handout", "worksheet": "Worksheet", "answers": "Answers"}


def paper(kind: str, lessons: Sequence[str], scene: Scene, seed: int) -> str:
    """Return lessons as an HTML page without links to anything else, for A4, in the current language.

    Args:
        kind: one of `PAPERS`: the text with its figure and exercise; question and exercise with room to write; or the
            answers to both.
        lessons: names of `LESSONS`, in any order.
        seed: of the exercises.

    Raises:
        AttentionVizError: the kind or a lesson doesn't exist. What a lesson itself can't show, its page says.
    """
    if kind not in PAPERS:
        raise AttentionVizError(f"unknown kind of paper {kind!r}; choose {', '.join(PAPERS)}")
    check_lessons(lessons)
    parts = [_part(kind, name, scene, seed) for name in lessons]
    figures = [part["figure"] for part in parts if part.get("figure") is not None]
    folder = resources.files("attention_viz.lesson.export")
    # Its own strings are ours, and a reader's words are escaped as they are filled in.
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        folder.joinpath("paper.html").read_text(encoding="utf-8")
    )
    return page.render(
        kind=kind,
        title=translate(PAPERS[kind]),
        language=current_language(),
        words=_words(),
        seed=seed,
        parts=parts,
        figures=Markup(script_json(figures)),
        plotly=Markup(PLOTLY_SCRIPT.read_text(encoding="utf-8")) if figures else "",
    )


def _part(kind: str, name: str, scene: Scene, seed: int) -> dict[str, Any]:
    lesson = LESSONS[name]
    title = f"{list(LESSONS).index(name) + 1}. {translate(lesson.title)}"
    try:
        ask, exercise = lesson.ask(scene), EXERCISES[lesson.exercise].make(scene, seed)
        found: dict[str, Any] = {
            "title": title,
            "made": lesson.made_from(scene),
            "exercise": _exercise(exercise),
            "ask": _ask(ask),
        }
        if kind == "answers":
            return found
        found |= {"idea": translate(lesson.idea) if lesson.idea else "", "image": asked_image(ask)}
        if kind == "handout":
            found |= _handout(name, lesson, scene)
        return found
    except AttentionVizError as error:
        return {"title": title, "missing": str(error)}


def _handout(name: str, lesson: Lesson, scene: Scene) -> Mapping[str, Any]:
    shown = lesson.show(scene)
    # Our own HTML, with the reader's words escaped.
    text = Markup(lesson_html(name, dict(shown.facts), scene.notation))
    return {"figure": plotly_data(shown, few=True), "says": shown.says, "text": text, "drawn": shown.drawn}


def _ask(ask: Ask) -> Mapping[str, Any]:
    text = "" if ask.place is None else ask.place.text.strip()
    return {
        "question": ask.question,
        "premise": ask.premise,
        "finding": ask.finding,
        "shares": ask.shares,
        "options": list(ask.options) if len(ask.options) <= _MOST_OPTIONS else [],
        "text": text,
    }


def _exercise(exercise: Exercise) -> Mapping[str, Any]:
    answer = exercise.answer
    options = list(answer.options) if isinstance(answer, OptionAnswer) else []
    tables = [(one.title, one.columns, list(zip(one.rows, one.cells, strict=True))) for one in given(exercise)]
    return {
        "question": _formatted(exercise.question),
        "tables": tables,
        "options": options,
        "solution": exercise.solution,
        "working": exercise.working,
    }


def _formatted(text: str) -> Markup:
    """Escape a text, and write symbols such as W_Q as formulas."""
    parts = words_and_symbols(text)
    return Markup("").join(Markup(mathml(latex)) if latex else words for words, latex in parts)


def _words() -> Mapping[str, str]:
    return {
        "name": translate("Name"),
        "predict": translate("Predict"),
        "why": translate("Why do you think so?"),
        "exercise": translate("Exercise"),
        "answer": translate("Answer"),
        "working": translate("Working"),
        "seed": translate("Seed"),
        "drawn": translate("Random numbers from a seed: they mean nothing."),
        "text": translate("Text"),
        "print": translate("Print"),
    }
