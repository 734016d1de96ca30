"""What a URL asks for is answered once its options are known, and values stay within their options."""

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.selection import Filled, PageOpened, Picked, Selection, answer, update
from tests.ui.selection.dives import DEPTHS, DIVE, WRITTEN, Dive, open_dive


def test_what_is_asked_stays_in_the_url_until_it_can_be_answered() -> None:
    selection = update(Selection(), PageOpened({"depth": "5", "place": "sea"}, (DIVE,)))
    assert selection.part(DIVE).pending["depth"] == "5" and selection.part(DIVE).unread
    assert selection.part(DIVE).written() == WRITTEN | {"depth": "5"}
    selection = answer(selection, DIVE, DEPTHS, only=("place",))
    assert selection.of(DIVE).depth == 1
    assert selection.part(DIVE).pending == {"depth": "5"} and "depth" in selection.part(DIVE).unread
    selection = answer(selection, DIVE, DEPTHS)
    assert selection.of(DIVE).depth == 5
    assert not selection.part(DIVE).pending and not selection.part(DIVE).unread


def test_what_cannot_be_had_is_named_until_something_else_is_chosen() -> None:
    selection = open_dive({"place": "lake", "depth": "3", "boat": "huge"})
    assert selection.of(DIVE) == Dive(place="lake")
    notices = (
        "The URL asks for depth “3”. Allowed here: 0 to 2. Shown instead: 1.",
        "The URL asks for boat “huge”. Allowed here: small and large. Shown instead: small.",
    )
    assert selection.part(DIVE).notices == notices
    selection = open_dive({}, selection)
    assert selection.part(DIVE).notices == notices
    selection = update(selection, Picked(DIVE, {"depth": 2}))
    assert selection.part(DIVE).notices == ()
    assert update(selection, Picked(DIVE, {"depth": 1})).part(DIVE).notices == ()


def test_what_a_page_fills_in_is_no_choice_and_leaves_the_notices() -> None:
    selection = open_dive({"boat": "huge"})
    selection = update(selection, Filled(DIVE, {"depth": 2}, ("And more.",)))
    part = selection.part(DIVE)
    assert len(part.notices) == 2 and part.notices[-1] == "And more."
    assert selection.of(DIVE).depth == 2 and "depth" not in part.chosen


def test_going_back_empties_what_was_chosen_later() -> None:
    selection = update(open_dive({}), Picked(DIVE, {"depth": 4, "note": "calm", "only": 2}))
    assert open_dive(WRITTEN, selection, again=True).of(DIVE) == Dive()


def test_going_back_restores_what_no_link_carries_and_what_nothing_depends_on() -> None:
    long = "word " * SETTINGS.longest_link
    selection = update(open_dive({}), Picked(DIVE, {"note": long, "boat": "large"}))
    assert "note" not in selection.part(DIVE).written()
    back = open_dive({"place": "lake", "depth": "1"}, selection, again=True)
    assert back.of(DIVE) == Dive(place="lake", note=long, boat="large")


def test_what_another_model_lacks_becomes_its_nearest_and_of_all_it_stays_all() -> None:
    selection = open_dive({"depth": "8", "only": "8"})
    assert selection.of(DIVE) == Dive(depth=8, only=8)
    dive = answer(selection, DIVE, {"sea": 4}).of(DIVE)
    assert dive == Dive(depth=3, only=None)
    assert DIVE.parameters()["only"].kind.to_widget(dive.only) == "all"


def test_what_the_url_leaves_out_is_the_pages_default() -> None:
    selection = update(Selection(), PageOpened({"depth": "5"}, (DIVE,)))
    assert answer(selection, DIVE, DEPTHS, default=Dive(note="calm", depth=2)).of(DIVE) == Dive(depth=5, note="calm")
