"""One lesson."""

import functools
import html
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.lesson import LESSONS, Ask, Lesson, Scene, Shown
from attention_viz.lesson.export.picture import fitted, with_spots
from attention_viz.lesson.lesson import CatalogueHead, Spot
from attention_viz.lesson.question import SHOWN, hide_letters
from attention_viz.lesson.translation import current_language, translate
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
        title = f"{screen.place + 1}\\. {plain(translate(lesson.title))}"
        if ask is None:
            st.markdown(f"# {title}", width="stretch")
        else:
            minutes = translate("{count} minutes", count=lesson.minutes)
            headings = [(ask.question, minutes), (ask.finding, ask.source)]
            phrase, below = headings[seen]
            with st.container(gap=None, width="stretch"):
                _show_idea(lesson)
                _show_premise(ask)
                with st.container(gap=None, key="learn-phrase"):
                    st.markdown(f"# {plain(phrase)}")
                    st.caption(f"{title} · {plain(below)}")
                    _keep_room(headings, f"{screen.place + 1}. {translate(lesson.title)} · ")
                _show_asked_text(ask, scene)
        st.button(translate("← Back"), key="learn-back", disabled=screen.place == 0, on_click=go, args=(before,))
        last = screen.place == screen.count - 1
        st.button(translate("Next →"), key="learn-next", disabled=last, on_click=go, args=(after,))


def _keep_room(headings: Sequence[tuple[str, str]], before: str) -> None:
    """Keep the room of the largest heading, invisibly and without its words, so that an answer moves nothing."""
    shapes = [(hide_letters(one), hide_letters(before + two)) for one, two in headings]
    rooms = (f"<div><strong>{html.escape(one)}</strong>{html.escape(two)}</div>" for one, two in shapes)
    st.html(f'<div class="learn-room" aria-hidden="true">{"".join(rooms)}</div>')


def _show_idea(lesson: Lesson) -> None:
    """Introduce the words of the question, before the answer and after it."""
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
            st.caption(plain(translate("Text: “{text}”", text=ask.place.text.strip())))


def framed(key: str, *, drawn: bool) -> DeltaGenerator:
    """Return a container; a frame and a line tell random numbers from a model's."""
    place = st.container(key=f"learn-random-{key}" if drawn else f"learn-measured-{key}")
    if drawn:
        place.caption(translate("Random numbers from a seed: they mean nothing."))
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
        translate(control.label),
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
        translate("Query word"),
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
    wish = name, scene.text, *shown, scene.notation, scene.theme, current_language()
    last = visit.memory(_Computed).last
    if kind not in last or last[kind][0] != wish:
        last[kind] = wish, make(scene)
    return last[kind][1]


def show_picture_of(name: str, shown: Shown, *, few: bool) -> None:
    """Draw a copy of the picture: the cached one serves every screen size."""
    figure = fitted(shown.figure, few=few)
    key = f"learn-picture-{name}"
    if shown.spots:
        with_spots(figure, shown.spots)
        show_to_click(figure, key, shown.says, functools.partial(_press_spot, name, shown.spots))
    else:
        show_picture(figure, key, shown.says)


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
            st.caption(translate("See also:"), width="content")
            for label, page in found:
                st.page_link(page, label=label, query_params=address)
