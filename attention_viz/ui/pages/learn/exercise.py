"""An exercise on the page: the question, what is given, a way to answer of its kind, and what is said to the answer."""

import html
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from attention_viz.lesson.exercise import Cells, Choice, Exercise, Table
from attention_viz.ui.pages.learn.state import ANSWER, another_exercise
from attention_viz.ui.parts.markdown import plain

__all__ = ["answer_key", "show_exercise", "show_tables", "table_html"]

# How many hints were shown, whether the solution was, and what was answered (`GIVEN`), each together with the exercise
# that it belongs to.
# Options of so many letters stand beside each other.
_SHORT = 9
_HINTS, _SOLVED = "learn-hints", "learn-solution"


def answer_key(kind: str, text: str, seed: int) -> str:
    """What tells one exercise from another on the page: another sentence or seed begins with an empty answer."""
    return f"learn-{kind}-{seed}-{zlib.crc32(text.encode('utf-8', 'replace'))}"


def show_exercise(exercise: Exercise, label: str, key: str, on_solved: Callable[[], None]) -> None:
    """Everything of one exercise.

    Args:
        exercise: what is asked.
        label: what is to be done, in a few words.
        key: from `answer_key`.
        on_solved: called, before the page runs again, once the answer is right.
    """
    st.markdown(f"**3** Exercise: {plain(label[:1].lower() + label[1:])}")
    st.markdown(plain(f"{exercise.question} {exercise.desk}".strip()))
    show_tables(exercise.given)
    with st.form(f"{key}-form", border=False):
        _ask(exercise, key)
        st.form_submit_button("Check", on_click=_check, args=(exercise, key, on_solved), type="primary")
    # Below the button that is always there, so that nothing said moves them.
    hints = _buttons(exercise, key)
    _feedback(exercise, key)
    _show_feedback(exercise, key, hints)


def show_tables(tables: Sequence[Table]) -> None:
    """The numbers to work with, as tables that print, too; nothing where there are none."""
    if tables:
        st.html(f'<div class="learn-tables">{"".join(map(table_html, tables))}</div>')


def table_html(table: Table) -> str:
    """One of these tables, everything in it harmless."""

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
    """What an answer is given with."""
    answer = exercise.answer
    if isinstance(answer, Choice):
        options = answer.options
        short = max(map(len, options)) <= _SHORT
        with st.container(key="learn-short" if short else "learn-long"):
            st.radio(
                "Your answer", range(len(options)), index=None, key=key, format_func=lambda place: plain(options[place])
            )
    elif isinstance(answer, Cells):
        _ask_cells(answer, key)
    else:
        st.text_input("Your answer", key=key, placeholder="A number, such as 0.58 or 1/3")


def _ask_cells(answer: Cells, key: str) -> None:
    """A matrix whose cells are pressed; each is a button that says its column, in a group that says its row."""
    with st.container(key="learn-cells", gap=None):
        st.html(_column_names(answer.columns))
        for row, name in enumerate(answer.rows):
            place = f"{key}-{row}"
            st.session_state.setdefault(place, sorted(column for at, column in answer.start if at == row))
            st.pills(
                plain(name),
                range(len(answer.columns)),
                format_func=lambda column: plain(f"{column} {answer.columns[column]}"),
                selection_mode="multi",
                key=place,
            )


def _column_names(names: Sequence[str]) -> str:
    """What the columns are called, above them; whoever hears the page hears it at each cell."""
    cells = "".join(f'<span title="{html.escape(name)}">{html.escape(name)}</span>' for name in names)
    return f'<div class="learn-columns" aria-hidden="true">{cells}</div>'


def _typed_answer(exercise: Exercise, key: str) -> str | None:
    """The answer as text that `Exercise.check` reads; None where nothing was answered yet."""
    widget: Any = st.session_state.get(key)
    if isinstance(exercise.answer, Choice):
        return None if widget is None else exercise.answer.options[widget]
    if isinstance(exercise.answer, Cells):
        rows = range(len(exercise.answer.rows))
        return ",".join(f"{row}>{column}" for row in rows for column in sorted(st.session_state[f"{key}-{row}"]))
    return widget or None


def _check(exercise: Exercise, key: str, on_solved: Callable[[], None]) -> None:
    typed = _typed_answer(exercise, key)
    st.session_state[ANSWER] = key, typed
    if typed is not None and exercise.check(typed).right:
        on_solved()


def _feedback(exercise: Exercise, key: str) -> None:
    """What is said to the last answer, with the arithmetic."""
    whose, typed = st.session_state.get(ANSWER, ("", None))
    if whose != key:
        return
    if typed is None:
        st.info("Choose or type an answer first.")
        return
    found = exercise.check(typed)
    if not found.understood:
        st.info(plain(found.words))
    elif found.right:
        st.success(f"**Right.** {plain(found.words)}")
    else:
        st.warning(f"**Not yet.** {plain(found.words)}")


def _buttons(exercise: Exercise, key: str) -> int:
    """Another hint, the solution for who has tried, and another exercise of the kind; how many hints are asked for."""
    whose, count = st.session_state.get(_HINTS, ("", 0))
    count = min(count, len(exercise.hints)) if whose == key else 0
    tried = st.session_state.get(ANSWER, ("", None))[0] == key or count == len(exercise.hints)
    with st.container(horizontal=True, key="learn-more"):
        label = f"Hint {count + 1} of {len(exercise.hints)}" if count < len(exercise.hints) else "No more hints"
        st.button(label, on_click=_hint, args=(key, count + 1), disabled=count >= len(exercise.hints))
        st.button("Solution", on_click=_solve, args=(key,), disabled=not tried)
        st.button("Another one", on_click=another_exercise)
    return count


def _show_feedback(exercise: Exercise, key: str, hints: int) -> None:
    """The hints and the solution, as far as they were asked for."""
    for at, hint in enumerate(exercise.hints[:hints], 1):
        st.markdown(f"**Hint {at}.** {plain(hint)}")
    if st.session_state.get(_SOLVED) == key:
        st.markdown(f"**Solution: {plain(exercise.solution)}.** {plain(exercise.working)}")


def _hint(key: str, count: int) -> None:
    st.session_state[_HINTS] = key, count


def _solve(key: str) -> None:
    st.session_state[_SOLVED] = key
