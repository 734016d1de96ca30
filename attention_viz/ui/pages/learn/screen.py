"""One lesson."""

import copy
import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import streamlit as st
from plotly.graph_objects import Figure
from streamlit.delta_generator import DeltaGenerator

from attention_viz.lesson import LESSONS, Ask, Lesson, Scene, Shown
from attention_viz.lesson.lesson import CatalogueHead, Spot
from attention_viz.lesson.question import SHOWN
from attention_viz.lesson.translation import translate
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State, write_address
from attention_viz.ui.address.kinds import notice
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.plot import show_picture, show_to_click
from attention_viz.ui.pages.learn.page import chosen, go, set_choice
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.menu import PAGES
from attention_viz.ui.parts.notices import show_notices

Made = TypeVar("Made")

# The height of a figure's title, and the room left above it for a legend or the names of its parts.
_TITLE, _ABOVE = 30, 30
# A figure's height on the first screen, in pixels; one that names many words may be taller.
_LEFT = 440
# The size of a clickable spot in a figure, in pixels.
_SPOT = 20


@dataclass(frozen=True)
class Screen:
    """The lesson on the screen, and its place in the course, from 0."""

    name: str
    place: int
    count: int
    names: tuple[str, ...]


def show_heading(screen: Screen, lesson: Lesson, scene: Scene, *, ask: Ask | None = None, seen: bool = False) -> None:
    """Show the question, or then the finding."""
    before = screen.names[max(0, screen.place - 1)]
    after = screen.names[min(screen.count - 1, screen.place + 1)]
    with st.container(horizontal=True, vertical_alignment="center", key="learn-heading"):
        title = f"{screen.place + 1}\\. {plain(lesson.title)}"
        if ask is None:
            st.markdown(f"# {title}", width="stretch")
        else:
            phrase = plain(ask.finding if seen else ask.question)
            below = f"{title} · {plain(ask.source)}" if seen else f"{title} · {lesson.minutes} minutes"
            with st.container(gap=None, width="stretch"):
                _show_idea(lesson)
                _show_premise(ask)
                st.markdown(f"# {phrase}")
                st.caption(below)
                _show_asked_text(ask, scene)
        st.button("← Back", key="learn-back", disabled=screen.place == 0, on_click=go, args=(before,))
        last = screen.place == screen.count - 1
        st.button("Next →", key="learn-next", disabled=last, on_click=go, args=(after,))


def _show_idea(lesson: Lesson) -> None:
    """Introduce what the question names, before the answer and after it."""
    if lesson.idea:
        with st.container(key="learn-idea"):
            st.markdown(plain(translate(lesson.idea)))


def _show_premise(ask: Ask) -> None:
    """Show the numbers that the question builds on."""
    if ask.premise:
        with st.container(key="learn-premise"):
            st.markdown(plain(ask.premise))


def _show_asked_text(ask: Ask, scene: Scene) -> None:
    """Show the text that the question is about, unless it is the one in the box."""
    if ask.place is not None and ask.place.text != scene.text:
        with st.container(key="learn-asked"):
            st.caption(f"Text: “{plain(ask.place.text.strip())}”")


def framed(key: str, *, drawn: bool) -> DeltaGenerator:
    """Return a container; a frame and a line tell random numbers from a model's."""
    place = st.container(key=f"learn-random-{key}" if drawn else f"learn-measured-{key}")
    if drawn:
        place.caption("Random numbers from a seed: they mean nothing.")
    return place


def show_control(name: str, scene: Scene) -> None:
    """Show the lesson's control; warn if the URL names a missing option."""
    control = LESSONS[name].control
    options, value, asked = dict(control.options(scene)), control.value(scene), scene.choice
    if asked and asked not in options:
        show_notices([notice("choice", asked, ", ".join(options), value)])
    key = f"learn-control-{name}"
    # The lesson sets an unchosen option.
    widgets.preset(key, value)
    show = st.select_slider if control.ordered else st.pills if control.words else st.selectbox
    show(
        control.label,
        list(options),
        format_func=lambda option: options[option],
        key=key,
        on_change=_take_option,
        args=(key, options),
    )


def _take_option(key: str, options: Collection[str]) -> None:
    option = widgets.content(key)
    if option in options:
        # A guess was about another setting.
        set_choice(choice=option, **({"guess": SHOWN} if chosen().guess else {}))


def show_words(name: str, scene: Scene) -> None:
    """Show the figure's clickable words, unless the bars are those."""
    words = LESSONS[name].words
    if words is None:
        return
    options, asking = words(scene)
    key = f"learn-words-{name}"
    widgets.preset(key, asking)
    st.pills(
        "Query word",
        list(options),
        format_func=options.__getitem__,
        key=key,
        on_change=_press,
        args=(key, options),
    )


def _press(key: str, options: Collection[str]) -> None:
    word = widgets.content(key)
    if word in options:
        set_choice(word=int(word), guess=SHOWN)


def shown_of(name: str, scene: Scene) -> Shown:
    """Return a lesson's text and figure, cached because answers don't change them."""
    return _once("show", name, scene, LESSONS[name].show)


def asked_of(name: str, scene: Scene) -> Ask:
    """Return a lesson's question, computed once."""
    return _once("ask", name, scene, LESSONS[name].ask)


@dataclass
class _Computed:
    last: dict[str, tuple[tuple[object, ...], Any]] = field(default_factory=dict[str, tuple[tuple[object, ...], Any]])


def _once(kind: str, name: str, scene: Scene, make: Callable[[Scene], Made]) -> Made:
    shown = scene.head, scene.query, scene.word, LESSONS[name].control.value(scene)
    wish = name, scene.text, *shown, scene.notation, scene.theme
    last = visit.memory(_Computed).last
    if kind not in last or last[kind][0] != wish:
        last[kind] = wish, make(scene)
    return last[kind][1]


def show_picture_of(name: str, shown: Shown, *, few: bool) -> None:
    """Draw a copy of the picture: the cached one serves every screen size."""
    figure = copy.deepcopy(shown.figure)
    layout: Any = figure.layout
    # The text beside the figure explains it, so it needs no title, only room for a legend.
    parts: list[Any] = list(figure.data)
    legend = any(one.showlegend for one in parts) and (layout.legend.y or 0) >= 1
    figure.update_layout(
        title_text="", margin_t=max(layout.margin.t - _TITLE, _ABOVE if legend or layout.annotations else 8)
    )
    height = layout.height or _LEFT
    if few and "xaxis2" not in layout:  # a figure below another needs its room
        figure.update_layout(height=min(_LEFT, height))
    key = f"learn-picture-{name}"
    if shown.spots:
        _add_spots(figure, shown.spots)
        show_to_click(figure, key, shown.says, functools.partial(_press_spot, name, shown.spots))
    else:
        show_picture(figure, key, shown.says)


def _add_spots(figure: Figure, spots: Sequence[Spot]) -> None:
    """Add invisible numbered points, which Plotly reports clicks on."""
    # Beside others, a trace without a name would be listed as "trace 0".
    found: list[Any] = list(figure.select_traces())
    for part in [one for one in found if not one.name]:
        part.showlegend = False
    unseen = {"marker": {"opacity": 0}}
    # A word drawn at a spot would catch the click instead.
    axes = {spot.axis for spot in spots}
    # A matrix has no mode.
    for words in [one for one in found if getattr(one, "mode", None) == "markers+text"]:
        if (words.xaxis or "x")[1:] in axes:
            words.update(hoverinfo="skip", hovertemplate=None)
    for axis in dict.fromkeys(spot.axis for spot in spots):
        some = [(number, spot) for number, spot in enumerate(spots) if spot.axis == axis]
        figure.add_scatter(
            x=[spot.x for _, spot in some],
            y=[spot.y for _, spot in some],
            customdata=[(number, 0) for number, _ in some],
            xaxis=f"x{axis}",
            yaxis=f"y{axis}",
            mode="markers",
            marker={"size": _SPOT, "opacity": 0},
            selected=unseen,
            unselected=unseen,
            hovertext=[spot.name for _, spot in some],
            hoverinfo="text" if any(spot.name for _, spot in some) else "none",
            showlegend=False,
        )


def _press_spot(name: str, spots: Sequence[Spot], point: tuple[int, int]) -> None:
    option = spots[point[0]].option
    if LESSONS[name].control.words:
        set_choice(choice=option, guess=SHOWN)
    else:
        set_choice(word=int(option), guess=SHOWN)


def show_deeper(lesson: Lesson, place: CatalogueHead | None) -> None:
    """Link pages that go deeper."""
    address = pickers.address() if place is None else write_address(State(**asdict(place)))
    files = {"" if page == "app.py" else page[6:-3]: (label, page) for label, page in PAGES.items()}
    found = [files[name] for name in lesson.deeper if name in files]
    if found:
        with st.container(horizontal=True, vertical_alignment="center", key="learn-further", gap="small"):
            st.caption("See also:", width="content")
            for label, page in found:
                st.page_link(page, label=label, query_params=address)
