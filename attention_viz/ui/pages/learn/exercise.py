"""A lesson's question and exercise."""

import html
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from attention_viz.explorer import prediction_source
from attention_viz.lesson import Ask
from attention_viz.lesson.exercise import Cells, Exercise, OptionAnswer, Table
from attention_viz.lesson.question import GUESS, question_data
from attention_viz.lesson.translation import translate
from attention_viz.ui import visit, widgets
from attention_viz.ui.pages.learn.page import Tries, another_exercise
from attention_viz.ui.parts.markdown import plain

# The most letters of an option that has others beside it.
_SHORT = 9

_KEY = "learn-predict"

_prediction = widgets.component("prediction", *prediction_source())


def answer_key(kind: str, text: str, seed: int) -> str:
    """Key an exercise by sentence and seed, so others begin empty."""
    return f"learn-{kind}-{seed}-{zlib.crc32(text.encode('utf-8', 'replace'))}"


def show_exercise(exercise: Exercise, label: str, key: str, on_note: Callable[..., None]) -> None:
    """Draw an exercise; `on_note` gets an answer and whether it is right, the hints or the shown solution."""
    st.markdown(f"**3** {plain(translate('Exercise: {label}', label=label))}")
    st.markdown(plain(f"{exercise.question} {exercise.desk}".strip()))
    show_tables(exercise.given)
    with st.form(f"{key}-form", border=False):
        _ask(exercise, key)
        st.form_submit_button(translate("Check"), on_click=_check, args=(exercise, key, on_note), type="primary")
    # The feedback is below the buttons, so that it doesn't move them; the page scrolls to it.
    hints = _buttons(exercise, key, on_note)
    with st.container(key="learn-verdict"):
        _feedback(exercise, key)
        _show_feedback(exercise, key, hints)


def show_tables(tables: Sequence[Table]) -> None:
    """Show the exercise's printable tables."""
    if tables:
        st.html(f'<div class="learn-tables">{"".join(map(table_html, tables))}</div>')


def table_html(table: Table) -> str:
    """Return a table as escaped HTML."""

    def cells(tag: str, texts: Sequence[str], scope: str = "") -> str:
        return "".join(f"<{tag}{scope}>{html.escape(text)}</{tag}>" for text in texts)

    head = cells("td", [""]) + cells("th", table.columns, ' scope="col"')
    rows = [
        cells("th", [name], ' scope="row"') + cells("td", texts)
        for name, texts in zip(table.rows, table.cells, strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in (head, *rows))
    title = f"<caption>{html.escape(table.title)}</caption>"
    return f'<div class="learn-given" tabindex="0"><table>{title}{body}</table></div>'


def _ask(exercise: Exercise, key: str) -> None:
    answer = exercise.answer
    if isinstance(answer, OptionAnswer):
        options = answer.options
        short = max(map(len, options)) <= _SHORT
        with st.container(key="learn-short" if short else "learn-long"):
            st.radio(
                translate("Your answer"),
                range(len(options)),
                index=None,
                key=key,
                format_func=lambda place: plain(options[place]),
            )
    elif isinstance(answer, Cells):
        _ask_cells(answer, key)
    else:
        st.text_input(translate("Your answer"), key=key, placeholder=translate("A number, such as 0.58 or 1/3"))


def _ask_cells(answer: Cells, key: str) -> None:
    """Draw a matrix of buttons: each names its column, each group its row."""
    with st.container(key="learn-cells", gap=None):
        st.html(_column_names(answer.columns))
        for row, name in enumerate(answer.rows):
            st.pills(
                plain(name),
                range(len(answer.columns)),
                format_func=lambda column: plain(f"{column} {answer.columns[column]}"),
                selection_mode="multi",
                default=sorted(column for at, column in answer.start if at == row),
                key=f"{key}-{row}",
            )


def _column_names(names: Sequence[str]) -> str:
    """Draw column names for sight only: each cell's label has its own."""
    cells = "".join(f'<span title="{html.escape(name)}">{html.escape(name)}</span>' for name in names)
    return f'<div class="learn-columns" aria-hidden="true">{cells}</div>'


def _typed_answer(exercise: Exercise, key: str) -> str | None:
    widget: Any = widgets.content(key)
    if isinstance(exercise.answer, OptionAnswer):
        # By its place: its words depend on the language.
        return None if widget is None else f"#{widget}"
    if isinstance(exercise.answer, Cells):
        rows = range(len(exercise.answer.rows))
        return ",".join(f"{row}>{column}" for row in rows for column in sorted(widgets.content(f"{key}-{row}", ())))
    return widget or None


def _check(exercise: Exercise, key: str, on_note: Callable[..., None]) -> None:
    typed = _typed_answer(exercise, key)
    tries = visit.memory(Tries)
    tries.answer, tries.checks = (key, typed), tries.checks + 1
    if typed is not None and (found := exercise.check(typed)).understood:
        on_note(answer=typed, right=found.right)


def _feedback(exercise: Exercise, key: str) -> None:
    whose, typed = visit.memory(Tries).answer
    if whose != key:
        return
    if typed is None:
        st.info(translate("Choose or type an answer first."))
        return
    found = exercise.check(typed)
    if not found.understood:
        st.info(plain(found.words))
    elif found.right:
        st.success(f"**{translate('Right.')}** {plain(found.words)}")
    else:
        st.warning(f"**{translate('Not yet.')}** {plain(found.words)}")


def _buttons(exercise: Exercise, key: str, on_note: Callable[..., None]) -> int:
    """Show the solution only after a try; return the hint count."""
    tries = visit.memory(Tries)
    whose, count = tries.hints
    count = min(count, len(exercise.hints)) if whose == key else 0
    tried = tries.answer[0] == key or count == len(exercise.hints)
    with st.container(horizontal=True, key="learn-more"):
        label, most = translate("No more hints"), len(exercise.hints)
        if count < most:
            label = translate("Hint {number} of {count}", number=count + 1, count=most)
        st.button(label, on_click=_hint, args=(key, count + 1, on_note), disabled=count >= most)
        st.button(translate("Solution"), on_click=_solve, args=(key, on_note), disabled=not tried)
        st.button(translate("New exercise"), on_click=another_exercise)
    return count


def _show_feedback(exercise: Exercise, key: str, hints: int) -> None:
    for at, hint in enumerate(exercise.hints[:hints], 1):
        st.markdown(f"**{translate('Hint {number}.', number=at)}** {plain(hint)}")
    if visit.memory(Tries).solved == key:
        solution = plain(translate("Solution: {answer}.", answer=exercise.solution))
        st.markdown(f"**{solution}** {plain(exercise.working)}")


def _hint(key: str, count: int, on_note: Callable[..., None]) -> None:
    visit.memory(Tries).hints = key, count
    on_note(hints=count)


def _solve(key: str, on_note: Callable[..., None]) -> None:
    visit.memory(Tries).solved = key
    on_note(solution=True)


def show_question(
    ask: Ask, guess: str, *, shown: bool, on_guess: Callable[[str], None], on_press: Callable[[int], None]
) -> None:
    """Draw the question and handle the guess, which is text as in the URL."""

    def guessed() -> None:
        text = widgets.sent(_KEY, "guess")
        # Anything can come from a browser.
        if isinstance(text, str) and GUESS.fullmatch(text):
            on_guess(text)

    def pressed() -> None:
        place = widgets.sent(_KEY, "press")
        if type(place) is int and 0 <= place < len(ask.pressed) and ask.pressed[place]:
            on_press(place)

    data = question_data(ask, shown=shown, guess=guess)
    _prediction(key=_KEY, data=data, height="content", on_guess_change=guessed, on_press_change=pressed)
