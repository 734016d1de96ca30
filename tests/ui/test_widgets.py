"""Widgets show the selection, and only what they offer is a choice."""

from typing import Any

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from attention_viz.ui import visit, widgets
from tests.ui.selection.dives import DIVE, VALUES, Dive, Values

DEPTHS = range(9)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    state: dict[str, Any] = {}
    monkeypatch.setattr(streamlit, "session_state", state)
    return state


def take(name: str, held: object, options: Any = None, *, group: Any = DIVE, then: Any = None) -> bool:
    """Show a parameter, then have its widget hold something, as Streamlit has it; return whether that was a choice."""
    run: dict[str, Any] = {}
    called: list[bool] = []

    def widget(*_: object, **look: Any) -> None:
        run.update(look)

    def follow() -> None:
        called.append(True)
        if then is not None:
            then()

    widgets.show(widget, "A label", of=group, name=name, options=options, then=follow)
    streamlit.session_state[run["key"]] = held
    run["on_change"](*run["args"])
    return called == [True]


@pytest.mark.parametrize("stale", ["7 √d_k", "1", "only 3", None, 2.0, 9, -1, True])
def test_a_label_of_before_in_the_place_of_a_number_is_no_choice(session: dict[str, Any], stale: object) -> None:
    visit.pick(DIVE, depth=5)
    before = visit.here().selection
    assert not take("depth", stale, DEPTHS)
    assert visit.here().selection is before
    widgets.preset("dive-depth", 5)
    assert session["dive-depth"] == 5


@pytest.mark.parametrize("stale", ["1", "", None, 2.0])
@pytest.mark.usefixtures("session")
def test_a_numbers_text_is_no_number_even_without_a_list_of_options(stale: object) -> None:
    visit.pick(DIVE, depth=5)
    assert not take("depth", stale)
    assert visit.chosen(DIVE) == Dive(depth=5)


@pytest.mark.usefixtures("session")
def test_an_option_is_chosen_and_what_follows_is_called_after_it() -> None:
    seen: list[int] = []
    assert take("depth", 7, DEPTHS, then=lambda: seen.append(visit.chosen(DIVE).depth))
    assert seen == [7]
    assert "depth" in visit.here().selection.part(DIVE).chosen


@pytest.mark.usefixtures("session")
def test_none_is_a_choice_only_where_a_parameter_may_be_none() -> None:
    options = ["all", *DEPTHS]
    assert take("only", 2, options) and visit.chosen(DIVE).only == 2
    # A picker that was emptied holds None, which isn't among its options.
    assert not take("only", None, options) and visit.chosen(DIVE).only == 2
    assert take("only", "all", options) and visit.chosen(DIVE).only is None
    assert take("name", "b", ["a", "b"], group=VALUES)
    assert take("name", None, ["a", "b", None], group=VALUES)
    assert visit.chosen(VALUES) == Values(name=None)
    assert not take("place", None) and visit.chosen(DIVE).place == "sea"


@pytest.mark.usefixtures("session")
def test_a_line_break_at_the_end_of_a_text_does_not_reach_the_url() -> None:
    assert take("note", "calm\nand clear\r\n")
    assert visit.here().selection.written(DIVE)["note"] == "calm\nand clear"


class Noted(dict[str, Any]):
    """A session that notes each key that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.written.append(key)


def test_a_widget_is_set_in_every_run_also_if_it_seems_to_hold_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    # On another page Streamlit is about to forget what the widget of this page holds.
    session = Noted()
    monkeypatch.setattr(streamlit, "session_state", session)
    widgets.preset("box", "a")
    widgets.preset("box", "a")
    widgets.preset("box", "b")
    assert session.written == ["box"] * 3
    assert (widgets.content("box"), widgets.content("none", 3)) == ("b", 3)


def test_a_renewed_widget_has_a_key_that_it_never_had(session: dict[str, Any]) -> None:
    first = widgets.fresh("upload")
    assert widgets.fresh("upload") == first != widgets.fresh("examples")
    other, keys = widgets.fresh("examples"), {first}
    for _ in range(3):
        widgets.renew("upload")
        assert widgets.fresh("upload") not in keys
        keys.add(widgets.fresh("upload"))
    assert widgets.fresh("examples") == other
    # Another visit begins anew.
    session.clear()
    assert widgets.fresh("upload") == first


def test_what_a_browser_sends_is_nothing_until_it_is_there(session: dict[str, Any]) -> None:
    assert widgets.sent("board", "press") is None
    session["board"] = {"press": 3}
    assert widgets.sent("board", "press") is None
    session["chart"] = {"selection": {"points": [], "rows": []}}
    assert widgets.clicked_point("chart") is None and widgets.picked_row("chart") is None
    session["chart"] = {"selection": {"points": [{"customdata": [1, 2]}, {}], "rows": [4]}}
    assert widgets.clicked_point("chart") == [1, 2] and widgets.picked_row("chart") == 4
    session["chart"] = {"selection": {"points": [{}]}}
    assert widgets.clicked_point("chart") is None


def script() -> None:
    """A page with two widgets for one parameter, and two switches; a deeper dive hides what follows it."""
    import streamlit as st

    from attention_viz.ui import visit, widgets
    from attention_viz.ui.selection import SHARED
    from tests.ui.selection.dives import DIVE

    depth = visit.chosen(DIVE).depth
    called = "Depth {}" if depth < 5 else "{} deep"
    widgets.show(st.selectbox, "Depth", of=DIVE, name="depth", options=range(9), format_func=called.format)
    if depth < 8:
        widgets.show(st.slider, "Again", 0, 8, of=DIVE, name="depth", key="again")
        widgets.show_switch("Special tokens", SHARED, "special", "special-switch")
    st.button("Deepest", on_click=lambda: visit.pick(DIVE, depth=8))


@pytest.fixture
def screen() -> AppTest:
    found = AppTest.from_function(script, default_timeout=60).run()
    assert not found.exception
    return found


def test_two_widgets_of_one_parameter_show_the_same(screen: AppTest) -> None:
    assert (screen.selectbox[0].value, screen.slider[0].value) == (1, 1)
    screen.selectbox[0].set_value(6).run()
    assert (screen.selectbox[0].value, screen.slider[0].value) == (6, 6)
    screen.slider[0].set_value(3).run()
    assert (screen.selectbox[0].value, screen.slider[0].value) == (3, 3)


def test_a_choice_outlives_the_widget_that_it_was_made_with(screen: AppTest) -> None:
    assert screen.toggle[0].value is True
    screen.toggle[0].set_value(False).run()
    screen.button[0].click().run()
    assert not screen.slider and not screen.toggle
    # Its options have other labels by now.
    assert screen.selectbox[0].value == 8
    screen.selectbox[0].set_value(2).run()
    assert (screen.slider[0].value, screen.toggle[0].value) == (2, False)
