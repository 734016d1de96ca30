"""What a visitor chose, from the address and from widgets, without a page."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import streamlit
from attention_viz.ui.address.session import Choices

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import session as held
from attention_viz.ui.address.codec import Older, modernised, parameter, read, write
from attention_viz.ui.address.kinds import Names, Number, OneOf, Text


def deep(choice: "Dive", known: Any) -> range:
    return range(known[choice.place])


@dataclass(frozen=True)
class Dive:
    place: str = parameter("sea", OneOf(("sea", "lake")), "where")
    depth: int = parameter(1, Number(deep), "how deep", older=Older("level", lambda address: "place" in address))
    only: int | None = parameter(None, Number(deep, nothing="all"), "the only one")
    note: str = parameter("", Text(), "a note", brief=True)
    boat: str = parameter("small", OneOf(("small", "large")), "the boat", applies=lambda dive, _: dive.place == "sea")


@dataclass(frozen=True)
class Values:
    moment: int = parameter(0, OneOf((0, 400, 425)), "one of several numbers")
    name: str | None = parameter(None, OneOf(("a", "b"), nothing="none"), "a name, or none")
    several: tuple[str, ...] = parameter((), Names(lambda _, known: known), "several names")


DEEP = {"sea": 9, "lake": 3}
WRITTEN = {"place": "sea", "depth": "1", "boat": "small"}
choices = Choices(Dive(), "dive-")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    state: dict[str, Any] = {}
    monkeypatch.setattr(streamlit, "session_state", state)
    return state


@pytest.fixture
def back(session: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], Dive]:
    """Comes to an address by Back or Forward."""

    def go(address: dict[str, str]) -> Dive:
        with monkeypatch.context() as patch:
            patch.setattr(held, "went_through_history", lambda: True)
            assert choices.begin(address)
        return choices.settle(DEEP)

    return go


def test_the_address_is_taken_at_the_first_run_and_widgets_hold_what_is_chosen_after_it(
    session: dict[str, Any],
) -> None:
    assert choices.begin({"depth": "5", "note": "calm"})
    assert choices.settle(DEEP) == Dive(depth=5, note="calm")
    session["dive-depth"] = 7
    assert not choices.begin({"depth": "2"})
    assert choices.settle(DEEP) == Dive(depth=7, note="calm")
    assert choices.address() == WRITTEN | {"depth": "7", "note": "calm"}


def test_what_cannot_be_had_is_told_until_something_else_is_chosen(session: dict[str, Any]) -> None:
    choices.begin({"place": "lake", "depth": "3", "boat": "huge"})
    assert choices.settle(DEEP) == Dive(place="lake")
    assert choices.notices() == [
        "The address asks for depth “3”. Allowed here: 0 to 2. Shown instead: 1.",
        "The address asks for boat “huge”. Allowed here: small and large. Shown instead: small.",
    ]
    choices.begin({})
    choices.settle(DEEP)
    assert len(choices.notices()) == 2
    session["dive-depth"] = 2
    assert choices.notices() == []
    session["dive-depth"] = 1
    assert choices.notices() == []


def test_what_is_asked_stays_in_the_address_until_it_can_be_answered(session: dict[str, Any]) -> None:
    choices.begin({"depth": "5", "place": "sea"})
    assert choices.asked("depth") == "5" and choices.asking
    assert choices.address() == WRITTEN | {"depth": "5"}
    assert choices.settle(DEEP, only=("place",)).depth == 1
    assert choices.asked("depth") == "5" and choices.asked("place") is None
    assert choices.settle(DEEP).depth == 5
    assert not choices.asking


def test_going_back_empties_what_was_chosen_later(
    session: dict[str, Any], back: Callable[[dict[str, str]], Dive]
) -> None:
    choices.begin({})
    choices.settle(DEEP)
    session.update({"dive-depth": 4, "dive-note": "calm", "dive-only": 2})
    assert back(WRITTEN) == Dive()


def test_going_back_keeps_what_no_link_carries_and_what_nothing_depends_on(
    session: dict[str, Any], back: Callable[[dict[str, str]], Dive]
) -> None:
    choices.begin({})
    choices.settle(DEEP)
    long = "word " * SETTINGS.longest_link
    session.update({"dive-note": long, "dive-boat": "large"})
    assert "note" not in choices.address()
    assert back({"place": "lake", "depth": "1"}) == Dive(place="lake", note=long, boat="large")


@pytest.mark.parametrize("stale", ["7 √d_k", "1", "only 3", None, 2.0])
def test_a_label_in_the_place_of_a_number_gives_way_to_what_was_chosen_before(
    session: dict[str, Any], stale: object
) -> None:
    choices.begin({"depth": "5"})
    choices.settle(DEEP)
    session["dive-depth"] = stale
    choices.begin({})
    assert choices.settle(DEEP).depth == 5
    assert session["dive-depth"] == 5


def test_whatever_kind_a_widget_is_set_to_stays_at_the_next_run(session: dict[str, Any]) -> None:
    values = Choices(Values(), "values-")
    values.begin({})
    assert values.settle("xyz") == Values()
    session.update({"values-moment": 425, "values-name": "b", "values-several": ("x", "z")})
    values.begin({})
    assert values.settle("xyz") == Values(425, "b", ("x", "z"))


def test_what_another_model_lacks_becomes_its_nearest_and_of_all_it_stays_all(session: dict[str, Any]) -> None:
    choices.begin({"depth": "8", "only": "8"})
    assert choices.settle(DEEP) == Dive(depth=8, only=8)
    assert choices.settle({"sea": 4}) == Dive(depth=3, only=None)
    assert session["dive-only"] == "all"


def test_what_a_page_adjusts_by_itself_is_no_choice_and_leaves_the_notices(session: dict[str, Any]) -> None:
    choices.begin({"boat": "huge"})
    choices.settle(DEEP)
    choices.adjust(["And more."], depth=2)
    assert len(choices.notices()) == 2 and choices.current().depth == 2


def test_what_a_page_adjusted_is_there_on_another_page_though_it_did_not_run_again(session: dict[str, Any]) -> None:
    choices.begin({})
    choices.settle(DEEP)
    choices.adjust(depth=2)
    # On another page Streamlit lets go of what its widgets held.
    session.pop("dive-depth")
    choices.restore()
    assert choices.current().depth == 2


def test_the_address_stays_what_the_page_before_wrote_until_something_is_chosen(session: dict[str, Any]) -> None:
    choices.begin({})
    choices.settle(DEEP)
    choices.adjust(depth=2)
    choices.arrived("depth")
    assert choices.address() == {"depth": "2"}
    session["dive-boat"] = "large"
    assert choices.address() == WRITTEN | {"depth": "2", "boat": "large"}


def test_a_link_of_before_opens_the_same_and_is_written_with_the_name_of_today() -> None:
    address = modernised([Dive], {"place": "sea", "level": "4"})
    assert address == {"place": "sea", "depth": "4"}
    assert modernised([Dive], {"level": "4"}) == {"level": "4"}
    assert modernised([Dive], {"place": "sea", "level": "4", "depth": "2"})["depth"] == "2"
    dive, notices = read(Dive(), address, DEEP)
    assert (dive, notices) == (Dive(depth=4), [])
    assert write(dive) == WRITTEN | {"depth": "4"}
    assert write(replace(dive, place="lake")) == {"place": "lake", "depth": "4"}
