"""The test of learning, whose answers stay in the browser."""

import streamlit as st

from attention_viz.explorer import quiz_source
from attention_viz.lesson.quiz import PARTS, quiz_data
from attention_viz.lesson.translation import translate
from attention_viz.ui import widgets
from attention_viz.ui.pages.learn.page import LearnChoice, go, lesson_names
from attention_viz.ui.pages.learn.progress import whose
from attention_viz.ui.parts.markdown import plain

_quiz = widgets.component("quiz", *quiz_source())
_KEY = "learn-quiz"
_MINUTES = 5


def show_quiz(choice: LearnChoice) -> None:
    """Show the test that the URL names, between the course's ends."""
    names, first = lesson_names(choice), choice.test == "before"
    with st.container(horizontal=True, vertical_alignment="center", key="learn-heading"):
        with st.container(gap=None, width="stretch"):
            st.markdown(f"# {plain(translate(PARTS[choice.test]))}")
            st.caption(translate("{count} minutes", count=_MINUTES))
        st.button(translate("← Back"), key="learn-back", disabled=first, on_click=go, args=(names[-1],))
        st.button(translate("Next →"), key="learn-next", disabled=not first, on_click=go, args=(names[0],))
    data = quiz_data(choice.test) | {"lessons": list(names), "whose": whose(choice)}

    def opened() -> None:
        name = widgets.sent(_KEY, "open")
        # Anything can come from a browser.
        if isinstance(name, str) and name in names:
            go(name)

    _quiz(key=_KEY, data=data, height="content", on_open_change=opened)
