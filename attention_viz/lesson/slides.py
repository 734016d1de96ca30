"""A lesson's question and exercise as slides for a class."""

from collections.abc import Sequence

from attention_viz.analysis.slides import GivenTable, Slide, SlidePicture
from attention_viz.analysis.slides.slide import Part
from attention_viz.lesson.course import given
from attention_viz.lesson.exercise import Cells, Exercise, OptionAnswer
from attention_viz.lesson.lesson import Ask
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words

# The most bars, letters of a bar's label, letters of words on a line, and letters of a sentence.
_BARS, _LABEL, _LINE, _SENTENCE = 12, 34, 66, 90
# The room around each word on a line, in letters.
_AROUND = 2


def lesson_slides(title: str, text: str, ask: Ask, exercise: Exercise) -> tuple[Slide, ...]:
    """Return two slides: question and exercise; `text` is empty if no sentence is used."""
    read = f" · {translate('“{word}”', word=in_words(text, _SENTENCE))}" if text else ""
    source = f"{title} · {ask.source}{read}"
    question = Slide(((ask.question, ""),), ((ask.finding, ""),), _asked(ask), source, shown=ask.seen)
    return question, _exercise(exercise, f"{title} · {translate('exercise')}{read}")


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
    # An answer of a number or two means nothing without its question, which stays above it.
    asked: tuple[Part, ...] = ((exercise.question, "small"),)
    working: tuple[Part, ...] = ((exercise.working, "small"),)
    if isinstance(right, Cells):
        tell = (*asked, (translate("The marked cells are wrong"), ""), *working)
        return Slide(((exercise.question, ""),), tell, None, where, tables)
    tell = (*asked, (translate("Answer: "), ""), (exercise.solution, "number"), *working)
    return Slide(((exercise.question, ""),), tell, _options(exercise), where, tables, exercise.seen)


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
