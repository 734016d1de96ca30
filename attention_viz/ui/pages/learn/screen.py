"""One lesson on the page: its heading with the way on, its text, and its picture with the one thing to change."""

import copy
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects
import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.lesson import LESSONS, Lesson, Scene, Shown
from attention_viz.ui.address.kinds import notice
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.learn.state import go, set_choice, take
from attention_viz.ui.pages.learn.text import show_text
from attention_viz.ui.parts.drawing import show_problem
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import PAGES
from attention_viz.ui.parts.notices import show_notices

__all__ = ["Screen", "show_screen"]

# What was computed last, with what it was computed for.
_SHOWN = "learn-shown"

# Pixels: in front of a room a picture is as tall as the screen leaves it.
_TALL = 540
# A picture's title, and what is left above the picture for a legend or the names of its parts.
_TITLE, _ABOVE = 30, 30
# How much larger than on a desk everything that is written in one is.
_LARGER = 1.4
# What the first screen leaves to a picture; one that names many words is as tall as it has to be.
_LEFT, _FEW = 440, 10
# What fills the place of the first lesson: the less of it, the less moves when the lesson comes.
_WAIT = 120


@dataclass(frozen=True)
class Screen:
    """Which lesson is on the screen.

    Attributes:
        name: a name in `LESSONS`.
        place: of it in the course, from 0.
        count: how many lessons there are.
        names: all of them, in order.
    """

    name: str
    place: int
    count: int
    names: tuple[str, ...]


def show_screen(screen: Screen, scene: Scene, *, large: bool = False) -> None:
    """A lesson, all but its exercise.

    Args:
        screen: which one.
        scene: the reader's sentence.
        large: whether a room looks on.
    """
    lesson = LESSONS[screen.name]
    _show_heading(screen, lesson, large=large)
    held = st.empty()
    if _SHOWN not in st.session_state:
        held.skeleton(height=_WAIT)
    try:
        options, value = dict(lesson.control.options(scene)), lesson.control.value(scene)
        shown = _shown(screen.name, lesson, scene, value)
    except AttentionVizError as error:
        show_problem(error, held)
        return
    held.empty()
    # Everything comes at once, the text first: on a phone the picture stands below it.
    text, picture = st.columns([1, 1] if large else [5, 6], gap="medium")
    with text:
        with st.container(key="learn-text"):
            show_text(screen.name, shown, scene.notation)
        if not large:
            _show_deeper(lesson)
    with picture.container(key="learn-figure"):
        _show_control(screen.name, lesson.control.label, options, value, scene.choice)
        _show_picture(screen.name, shown, few=len(scene.words) <= _FEW, large=large)


def _show_heading(screen: Screen, lesson: Lesson, *, large: bool) -> None:
    """Title, how far one is, and the way on."""
    before = screen.names[max(0, screen.place - 1)]
    after = screen.names[min(screen.count - 1, screen.place + 1)]
    with st.container(horizontal=True, vertical_alignment="center", key="learn-heading"):
        st.markdown(f"#### {screen.place + 1}\\. {plain(lesson.title)}", width="stretch")
        if not large:
            st.caption(f"{lesson.minutes} minutes", width="content")
        st.button("← Back", key="learn-back", disabled=screen.place == 0, on_click=go, args=(before,))
        last = screen.place == screen.count - 1
        st.button("Next →", key="learn-next", disabled=last, on_click=go, args=(after,))
        if large:
            st.button("End", key="learn-end", on_click=set_choice, kwargs={"present": "off"})


def _show_control(name: str, label: str, options: dict[str, str], value: str, asked: str) -> None:
    """The one thing to change; what the address asks for of it and there isn't is told."""
    if asked and asked not in options:
        show_notices([notice("choice", asked, ", ".join(options), value)])
    key = f"learn-control-{name}"
    st.session_state[key] = value
    st.selectbox(
        label,
        list(options),
        format_func=lambda option: options[option],
        key=key,
        on_change=take,
        args=(key, "choice"),
    )


def _shown(name: str, lesson: Lesson, scene: Scene, value: str) -> Shown:
    """What there is to tell and to see, computed once: an answer that is checked changes nothing of it."""
    wish = name, scene.text, value, scene.notation, scene.theme
    held = st.session_state.get(_SHOWN)
    if held is None or held[0] != wish:
        held = st.session_state[_SHOWN] = wish, lesson.show(scene)
    return held[1]


def _show_picture(name: str, shown: Shown, *, few: bool, large: bool) -> None:
    """The picture, and below it what it shows; a copy, as the one that is kept belongs to every size of screen."""
    figure = copy.deepcopy(shown.figure)
    layout: Any = figure.layout
    # What it shows stands below it: nothing above needs the room that a title takes, but for a legend.
    parts: list[Any] = list(figure.data)
    legend = any(one.showlegend for one in parts) and (layout.legend.y or 0) >= 1
    figure.update_layout(
        title_text="", margin_t=max(layout.margin.t - _TITLE, _ABOVE if legend or layout.annotations else 8)
    )
    height = layout.height or _LEFT
    if large:
        figure = _enlarged(figure).update_layout(height=max(_TALL, height))
    elif few and "xaxis2" not in layout:  # what stands below another picture needs its room
        figure.update_layout(height=min(_LEFT, height))
    show_picture(figure, f"learn-picture-{name}", shown.says)
    st.caption(plain(shown.says))


def _enlarged(figure: plotly.graph_objects.Figure) -> plotly.graph_objects.Figure:
    """A figure with larger letters, wherever a size is written down."""

    def larger(part: Any, name: str = "") -> Any:
        if isinstance(part, dict):
            inner: dict[str, Any] = {key: larger(value, key) for key, value in part.items()}
            if name.endswith("font") and "size" in inner:
                inner["size"] = _LARGER * inner["size"]
            return inner
        return [larger(one) for one in part] if isinstance(part, list | tuple) else part

    return plotly.graph_objects.Figure(larger(figure.to_plotly_json()))


def _show_deeper(lesson: Lesson) -> None:
    """Pages where the same can be looked at further."""
    files = {"" if page == "app.py" else page[6:-3]: (label, page) for label, page in PAGES.items()}
    found = [files[name] for name in lesson.deeper if name in files]
    if found:
        with st.container(horizontal=True, vertical_alignment="center", key="learn-further", gap="small"):
            st.caption("Look further:", width="content")
            for label, page in found:
                st.page_link(page, label=label, query_params=pickers.address())
