"""The class's tables, as escaped HTML."""

import html
from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from attention_viz.lesson import LESSONS
from attention_viz.lesson.progress.learned import Learned
from attention_viz.lesson.progress.summary import Stuck, Student, lessons_of
from attention_viz.lesson.quiz import QUIZ
from attention_viz.lesson.words import counted
from attention_viz.ui.parts.markdown import plain

_ROW = 'th scope="row"'
_MOST_NAMES = 3


def show_stuck(found: Sequence[Stuck]) -> None:
    """Show the exercises, most unsuccessful tries first."""
    if not found:
        return
    head = ("Lesson", "Tried", "Solved", "Wrong tries without success", "Frequent wrong answers", "Example")
    rows = [
        (
            (f"<b>{html.escape(LESSONS[one.lesson].title)}</b> <code>{one.lesson}</code>", ""),
            (str(one.students), ""),
            (str(one.solved), ""),
            (str(one.misses), ""),
            (_causes(one), ""),
            (f"{html.escape(one.example)} <small>seed {one.seed}</small>", ""),
        )
        for one in found
    ]
    st.html(_table("Exercises, the hardest first", head, rows, "class-stuck"))


def _causes(one: Stuck) -> str:
    items = "".join(
        f"<li>{html.escape(cause)} <small>{counted(count, 'student')}</small></li>" for cause, count in one.causes
    )
    return f"<ul>{items}</ul>" if items else ""


def show_students(students: Sequence[Student]) -> None:
    """Show a row per student and a column per lesson."""
    lessons = lessons_of(students)
    rows = [
        (
            (html.escape(student.label), _notes(student)),
            *((_cell(student, name), _spoken(student, name)) for name in lessons),
            (f"{sum(_solved(student, name) for name in lessons)} of {len(lessons)}", ""),
        )
        for student in students
    ]
    st.html(_table("Students by lesson", ("Student", *lessons, "Solved"), rows, "class-students"))
    st.caption(
        "✓ 2: solved in two tries. ✗ 3: three tries, not solved. h1: one hint. s: saw the solution first. "
        "?: the file calls it solved, but has no right answer. !: couldn’t be checked; point at it for the reason."
    )
    notes = [f"**{plain(one.label)}**: {plain(_notes(one))}" for one in students if _notes(one)]
    if notes:
        st.markdown("  \n".join(notes))


def show_learned(results: Mapping[str, Learned], both: Mapping[str, Learned]) -> None:
    """Show right answers before and after the course; `both` are the results of students with both tests."""
    before, after = results["before"], results["after"]
    rows = [
        (("Students who took it", ""), (str(before.taken), ""), (str(after.taken), "")),
        ((f"Right answers of {len(QUIZ)}, mean", ""), (_mean(before), ""), (_mean(after), "")),
        *(
            ((f"{at + 1}. {html.escape(one.question)}", ""), (str(before.right[at]), ""), (str(after.right[at]), ""))
            for at, one in enumerate(QUIZ)
        ),
    ]
    st.html(_table("Test of learning: right answers", ("Question", "Before", "After"), rows, "class-test"))
    paired = both["before"], both["after"]
    if paired[0].taken:
        took = counted(paired[0].taken, "student")
        st.caption(f"{took} took both: {_mean(paired[0])} right before, {_mean(paired[1])} after, on average.")


def _mean(one: Learned) -> str:
    return f"{one.mean:.1f}" if one.taken else ""


def _notes(student: Student) -> str:
    if not student.progress.id:
        return "a file of version 1.0, which has no answers"
    notes = ["has exercises with seeds of another student"] * student.progress.other_seeds
    unknown = [name or "without a name" for name in student.unknown_lessons]
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMES} more" * (len(unknown) > _MOST_NAMES)
        notes.append(f"has exercises of unknown lessons: {', '.join(unknown[:_MOST_NAMES])}{more}")
    return "; ".join(notes)


def _solved(student: Student, lesson: str) -> bool:
    return any(one.solved for one in student.of(lesson))


def _cell(student: Student, lesson: str) -> str:
    mine = student.of(lesson)
    tries, hints = sum(one.count for one in mine), sum(one.tried.hints for one in mine)
    helped = "".join([f" h{hints}" * bool(hints), " s" * any(one.tried.solution for one in mine)])
    if _solved(student, lesson):
        return f"<b>✓ {tries}</b>{helped}"
    if any(one.problem for one in mine):
        return "!"
    if student.claims(lesson):
        return f"?{helped}"
    return f"✗ {tries}{helped}" if tries else helped


def _spoken(student: Student, lesson: str) -> str:
    """Describe a cell in words."""
    mine = student.of(lesson)
    if problems := [one.problem for one in mine if one.problem]:
        return f"{lesson}: not checked, because {problems[0]}"
    if not mine:
        return f"{lesson}: {'claimed without an answer' if student.claims(lesson) else 'not tried'}"
    tries, hints = sum(one.count for one in mine), sum(one.tried.hints for one in mine)
    said = [
        f"solved at try {tries}"
        if _solved(student, lesson)
        else f"not solved, {tries} {'try' if tries == 1 else 'tries'}"
    ]
    said += [counted(hints, "hint")] * bool(hints) + ["saw the solution"] * any(one.tried.solution for one in mine)
    said += [f"seeds {', '.join(str(one.tried.seed) for one in mine)}"]
    return f"{lesson}: {'; '.join(said)}"


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[tuple[str, str]]], name: str) -> str:
    """Return a table; cells are HTML with a tooltip as text."""

    def cell(tag: str, content: str, tooltip: str) -> str:
        note = f' title="{html.escape(tooltip)}"' if tooltip else ""
        return f"<{tag}{note}>{content}</{tag.partition(' ')[0]}>"

    heads = "".join(f'<th scope="col" title="{_title(one)}">{html.escape(one)}</th>' for one in head)
    body = "".join(
        f"<tr>{cell(_ROW, *first)}{''.join(cell('td', *one) for one in others)}</tr>" for first, *others in rows
    )
    return (
        f'<div class="class-table" data-testid="{name}" tabindex="0"><table><caption>{html.escape(title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _title(name: str) -> str:
    return html.escape(LESSONS[name].title) if name in LESSONS else ""
