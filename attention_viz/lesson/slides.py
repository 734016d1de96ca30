"""A lesson as slides for a class: its question, figure, formula and exercise, each with its answer."""

import re
from collections.abc import Sequence

from attention_viz.analysis.slides import GivenTable, Slide, SlidePicture
from attention_viz.analysis.slides.slide import Part
from attention_viz.lesson.course import given
from attention_viz.lesson.exercise import Cells, Exercise, OptionAnswer
from attention_viz.lesson.formulas import mathml, words_and_symbols
from attention_viz.lesson.lesson import Ask, Shown
from attention_viz.lesson.render import lesson_text
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words

# The most bars, letters of a bar's label, letters of words on a line, and letters of a sentence.
_BARS, _LABEL, _LINE, _SENTENCE = 12, 34, 66, 90
# The room around each word on a line, in letters.
_AROUND = 2
# A formula on a line of its own, and one in a sentence.
_BLOCK, _INLINE = re.compile(r"\$\$(.+)\$\$", re.DOTALL), re.compile(r"\$([^$]+)\$")


def lesson_slides(
    name: str, title: str, text: str, ask: Ask, shown: Shown, exercise: Exercise, notation: str = "rows"
) -> tuple[Slide, ...]:
    """Return question, figure, formula and exercise; `text` is empty if no sentence is used.

    A lesson whose question shows all bars has no slide of its figure; one without formulas has no slide of them.
    """
    read = f" · {translate('“{word}”', word=in_words(text, _SENTENCE))}" if text else ""
    source = f"{title} · {ask.source}{read}"
    premise: tuple[Part, ...] = ((ask.premise, "small"),) if ask.premise else ()
    question = Slide(((ask.question, ""), *premise), ((ask.finding, ""), *premise), _asked(ask), source, shown=ask.seen)
    figure = () if ask.complete else (_figure(shown, f"{title}{read}"),)
    exercised = _exercise(exercise, f"{title} · {translate('exercise')}{read}")
    return question, *figure, *_formulas(name, shown, notation, f"{title}{read}"), exercised


def _figure(shown: Shown, source: str) -> Slide:
    """Show the figure, and then its sentence."""
    return Slide(
        ((translate("What does the figure show?"), ""),),
        ((shown.says, ""),),
        None,
        source,
        figure=str(shown.figure.to_json()),
    )


def _formulas(name: str, shown: Shown, notation: str, source: str) -> tuple[Slide, ...]:
    """Return a slide with the paragraph before the lesson's first formula, and with the formulas that follow it."""
    blocks = lesson_text(name, shown.facts, notation).split("\n\n")
    first = next((at for at, block in enumerate(blocks) if _BLOCK.fullmatch(block)), 0)
    if not first:
        return ()
    found = list[str]()
    for block in blocks[first:]:
        if not (formula := _BLOCK.fullmatch(block)):
            break
        found.append(mathml(formula[1], block=True))
    words = _parts(blocks[first - 1])
    return (Slide(words, words, None, source, formulas=tuple(found)),)


def _written(text: str) -> tuple[Part, ...]:
    """Write symbols such as W_Q as formulas."""
    return tuple((mathml(latex), "formula") if latex else (words, "") for words, latex in words_and_symbols(text))


def _parts(markdown: str) -> tuple[Part, ...]:
    """Split a paragraph into words and formulas."""
    plain = " ".join(markdown.replace("**", "").split())
    pieces = _INLINE.split(plain)
    return tuple(
        (mathml(piece), "formula") if at % 2 else (piece, "") for at, piece in enumerate(pieces) if piece.strip()
    )


def _asked(ask: Ask) -> SlidePicture:
    letters = sum(len(option) + _AROUND for option in ask.options)
    line = ask.shares and ask.query is not None and letters <= _LINE
    kept = _kept(ask)
    cuts = [at for at, place in enumerate(kept) if place != (kept[at - 1] + 1 if at else 0)]
    if kept[-1] != len(ask.options) - 1:
        cuts.append(len(kept))
    best = min(ask.right)
    return SlidePicture(
        "line" if line else "bars",
        tuple(in_words(ask.options[place], _LABEL) for place in kept),
        (False,) * len(kept),
        tuple(round(ask.values[place], 6) for place in kept),
        kept.index(ask.query) if ask.query in kept else None,
        kept.index(best),
        tuple(cuts),
        unit="weight" if ask.shares else "number",
        neutral=not (ask.shares or ask.word or ask.query is not None),
        written=() if line else tuple(ask.written[place] for place in kept),
    )


def _kept(ask: Ask) -> Sequence[int]:
    ranked = sorted(range(len(ask.options)), key=lambda at: -abs(ask.values[at]))
    first = [min(ask.right)] if ask.query is None else [min(ask.right), ask.query]
    return sorted(list(dict.fromkeys([*first, *ranked]))[:_BARS])


def _exercise(exercise: Exercise, where: str) -> Slide:
    right = exercise.answer
    wrong = tuple(sorted(right.wrong)) if isinstance(right, Cells) else ()
    tables = tuple(
        GivenTable(table.title, table.rows, table.columns, table.cells, wrong if table.marks else ())
        for table in given(exercise)
    )
    question = _written(exercise.question)
    # An answer of a number or two means nothing without its question, which stays above it.
    asked: tuple[Part, ...] = ((exercise.question, "small"),)
    working: tuple[Part, ...] = ((exercise.working, "small"),)
    if isinstance(right, Cells):
        tell = (*asked, (translate("The marked cells are wrong"), ""), *working)
        return Slide(question, tell, None, where, tables)
    tell = (*asked, (translate("Answer: "), ""), (exercise.solution, "number"), *working)
    return Slide(question, tell, _options(exercise), where, tables, exercise.seen)


def _options(exercise: Exercise) -> SlidePicture | None:
    answer = exercise.answer
    if not isinstance(answer, OptionAnswer):
        return None
    right = [at in answer.right for at in range(len(answer.options))]
    return SlidePicture(
        "bars",
        tuple(in_words(option, _LABEL) for option in answer.options),
        (False,) * len(right),
        tuple(map(float, right)),
        None,
        min(answer.right),
        unit="answer",
        written=tuple(translate("right") if one else "" for one in right),
    )
