"""The links that a class gets, and the teacher's to the answers."""

import html
from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.progress.record import STUDENTS, first_seed
from attention_viz.lesson.scene import LONGEST
from attention_viz.serving.runs import run_lesson
from attention_viz.ui import widgets
from attention_viz.ui.address import EXAMPLES
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.front.teacher import answers_key
from attention_viz.ui.pages.class_.page import CLASS_CHOICES, ClassChoice
from attention_viz.ui.pages.learn.page import begun
from attention_viz.ui.parts.exports import file_button, link, show_reach
from attention_viz.ui.parts.papers import paper_maker
from attention_viz.ui.selection import SHARED

_ASKS = {"student": "0"}
_PAPERS = {"handout": "Handout (HTML)", "worksheet": "Worksheet (HTML)", "answers": "Answers (HTML)"}


def show_links(choice: ClassChoice, text: str) -> None:
    """Draw the form, and the links that follow from it."""
    st.markdown("## Links for the class")
    st.caption("All links open the sentence in the box above.")
    with st.container(horizontal=True, key="class-form"):
        widgets.show(
            st.multiselect,
            "Lessons",
            of=CLASS_CHOICES,
            name="lessons",
            options={name: f"{place}. {one.title}" for place, (name, one) in enumerate(LESSONS.items(), 1)},
            placeholder="All lessons, or choose them in your order",
        )
        widgets.show(
            st.number_input, "Students", STUDENTS.start, STUDENTS[-1], of=CLASS_CHOICES, name="students", width=130
        )
    course = {"lessons": ".".join(choice.lessons)} if choice.lessons else {}
    if not fits_link(text):
        st.caption("The sentence is too long for a link; students type their own.")
    elif text != SHARED.default.text:  # the shorter, the sooner on a board
        course["text"] = text
    st.markdown("**One link for all.** It asks each student for a number, which gives exercises of their own.")
    _show(course | _ASKS)
    st.markdown("**The same exercises for all.**")
    _show(course)
    st.markdown("**Answers to the same exercises, for you only.** Every reader of this link sees all answers.")
    _show(course | {"answers": answers_key()})
    show_reach()
    with st.expander("A link for each student", key="class-each"):
        st.html(_table(course, choice.students))


def show_papers(choice: ClassChoice, text: str) -> None:
    """Draw downloads of the chosen lessons on paper."""
    st.markdown("## On paper")
    st.caption(
        "Each file has the chosen lessons with the sentence in the box above, and the exercises of the second link. "
        "Open it in a browser and print it."
    )
    lessons = choice.lessons or tuple(LESSONS)
    scene = Scene(begun(text, LONGEST, EXAMPLES[0])[0], run_lesson)
    refusals = st.empty()
    with st.container(horizontal=True, key="class-papers"):
        for kind, label in _PAPERS.items():
            make = paper_maker(kind, lessons, scene, 0)
            file_button(label, kind, "html", make, f"class-{kind}", refusals=refusals)


def _show(parameters: dict[str, str]) -> None:
    st.code(_learn(parameters), language=None, wrap_lines=True)


def _learn(parameters: dict[str, str]) -> str:
    """Return a URL of the Learn page of this server."""
    parts = urlsplit(st.context.url or "")
    folder = parts.path.rstrip("/").removesuffix("/class")
    return link(urlunsplit((parts.scheme, parts.netloc, f"{folder}/learn", "", "")), parameters)


def _table(course: dict[str, str], count: int) -> str:
    rows = list[str]()
    for number in range(1, count + 1):
        own = _anchor(course | {"student": str(number)})
        sheet = _anchor(course | {"exercise_seed": str(first_seed(number)), "answers": answers_key()}, "Answers")
        rows.append(f'<tr><th scope="row">{number}</th><td>{own}</td><td>{sheet}</td></tr>')
    head = "".join(f'<th scope="col">{one}</th>' for one in ("Number", "Link", "For you only"))
    return (
        '<div class="class-table" data-testid="class-links" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _anchor(parameters: dict[str, str], words: str = "") -> str:
    address = html.escape(_learn(parameters))
    return f'<a href="{address}">{words or address}</a>'
