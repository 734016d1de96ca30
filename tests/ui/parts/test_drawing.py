"""What stands in the place of a picture until it is there; and whoever leaves while a model loads waits no longer."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from attention_viz.errors import LoadCancelled
from attention_viz.serving import jobs, permissions, runs
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import Door
from attention_viz.serving.jobs import Loads
from attention_viz.serving.models import ModelFacts
from attention_viz.ui import visit as visits
from attention_viz.ui.address import State
from attention_viz.ui.controls import model as first
from attention_viz.ui.pages.compare import page as second
from attention_viz.ui.pages.compare.choice import COMPARE_CHOICES
from attention_viz.ui.parts import drawing
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.selection import Picked, Selection, update
from attention_viz.ui.visit import Visit


class Leaving(BaseException):
    """As Streamlit stops the run of a visitor who has left, when the page is next written on."""


def nothing_known(_model: str) -> ModelFacts:
    return ModelFacts({})


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A server where a model takes for ever to load, and a visitor who leaves meanwhile; set when it is given up."""
    given_up, begun = threading.Event(), threading.Event()

    def load(name: str, abandoned: Callable[[], bool]) -> Any:
        begun.set()
        deadline = time.monotonic() + 20
        while not abandoned() and time.monotonic() < deadline:
            time.sleep(0.01)
        if abandoned():
            given_up.set()
        raise LoadCancelled(name)

    def write(*_: object, **__: object) -> None:
        if begun.is_set():
            raise Leaving

    monkeypatch.setattr(jobs, "GRACE", 0.1)
    monkeypatch.setattr(runs, "LOADS", Loads(load))
    monkeypatch.setattr(runs, "MODELS", SharedCache[str, Any](10, lambda _: 1))
    monkeypatch.setattr(DeltaGenerator, "caption", write)
    return given_up


@pytest.mark.parametrize("loader", ["every page", "compare"])
def test_a_model_that_its_only_visitor_left_is_given_up(
    loader: str, given_up: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second, "facts_of", nothing_known)
    here = Visit(update(Selection(), Picked(COMPARE_CHOICES, {"what": "heads"})))
    monkeypatch.setattr(visits, "here", lambda: here)
    visit = first._load if loader == "every page" else second.load_second

    def leave() -> None:
        with pytest.raises(Leaving):
            visit(State(model="induction"))

    visitor = threading.Thread(target=leave, daemon=True)
    visitor.start()
    assert given_up.wait(15)
    visitor.join(5)
    assert not visitor.is_alive()


def holding() -> None:
    """A page on which two pictures aren't there yet: one waits for a model from a folder, one for something else."""
    from pathlib import Path

    import streamlit as st

    from attention_viz.serving import permissions
    from attention_viz.serving.settings import Settings
    from attention_viz.ui.address import State
    from attention_viz.ui.parts.drawing import hold

    permissions.SETTINGS = Settings(models=(Path("/srv/models"),))
    hold(State(model="/srv/models/my_*own*_model"), st.empty(), 300)
    hold(None, st.empty(), 300, "Trying all heads …")


def test_a_wait_is_said_in_words_that_name_the_model_and_no_folder_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permissions, "SETTINGS", permissions.SETTINGS)
    screen = AppTest.from_function(holding).run()
    assert [one.value for one in screen.caption] == [plain("Loading my_*own*_model for all visitors: a few seconds …")]
    assert ["Trying all heads …" in one.value and 'role="status"' in one.value for one in screen.get("html")] == [True]


def holding_nothing_of_note() -> None:
    """A page that waits for a run."""
    import streamlit as st

    from attention_viz.ui.parts.drawing import hold

    hold(None, st.empty(), 300)


def test_who_waits_for_others_is_told_how_many_are_first(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(1)
    monkeypatch.setattr(drawing, "FORWARDS", door)
    screen = AppTest.from_function(holding_nothing_of_note).run()
    assert ["Working …" in one.value for one in screen.get("html")] == [True]
    assert "scratch reads 3 words …" in drawing._working_words(State(model="scratch", text="the old bank"))
    long = drawing._working_words(State(model="scratch", text="old " * 2_000))
    assert "scratch reads 2,000 words …" in long and "a minute or more" in long
    with door:
        screen.run()
    assert ["1 run is before yours" in one.value for one in screen.get("html")] == [True]
