"""What one event changes, without a page and without a session."""

from dataclasses import replace

from attention_viz.ui.address import State
from attention_viz.ui.address.codec import write
from attention_viz.ui.selection import (
    SHARED,
    Clicked,
    FileClosed,
    FileOpened,
    Filled,
    Group,
    PageOpened,
    Picked,
    Ran,
    Selection,
    answer,
    resolve,
    update,
)
from tests.ui.selection.dives import DEPTHS, DIVE, VALUES, WRITTEN, Dive, Values, open_dive


def test_the_url_is_read_at_the_first_run_and_the_selection_holds_after_it() -> None:
    selection = open_dive({"depth": "5", "note": "calm"})
    assert selection.of(DIVE) == Dive(depth=5, note="calm")
    selection = update(selection, Picked(DIVE, {"depth": 7}))
    selection = open_dive({"depth": "2"}, selection)
    assert selection.of(DIVE) == Dive(depth=7, note="calm")
    assert selection.part(DIVE).written() == WRITTEN | {"depth": "7", "note": "calm"}


def test_whatever_kind_a_value_is_of_it_stays_at_the_next_run() -> None:
    selection = answer(update(Selection(), PageOpened({}, (VALUES,))), VALUES, "xyz")
    assert selection.of(VALUES) == Values()
    selection = update(selection, Picked(VALUES, {"moment": 425, "name": "b", "several": ("x", "z")}))
    selection = answer(update(selection, PageOpened({}, (VALUES,))), VALUES, "xyz")
    assert selection.of(VALUES) == Values(425, "b", ("x", "z"))


def test_what_a_page_fills_in_is_still_there_after_another_page() -> None:
    selection = update(open_dive({}), Filled(DIVE, {"depth": 2}))
    # Another page has other parameters.
    selection = answer(update(selection, PageOpened({}, (VALUES,))), VALUES, "xyz")
    assert selection.of(DIVE).depth == 2
    assert open_dive({}, selection).of(DIVE).depth == 2


def test_a_link_with_an_old_name_opens_the_same_and_is_written_with_the_new_one() -> None:
    selection = open_dive({"place": "sea", "level": "4"})
    assert selection.of(DIVE) == Dive(depth=4) and not selection.part(DIVE).notices
    assert selection.part(DIVE).written() == WRITTEN | {"depth": "4"}
    # Only together with a place it means the depth.
    assert open_dive({"level": "4"}).of(DIVE) == Dive()
    assert open_dive({"place": "sea", "level": "4", "depth": "2"}).of(DIVE).depth == 2
    assert write(replace(selection.of(DIVE), place="lake")) == {"place": "lake", "depth": "4"}


def test_two_groups_with_one_prefix_hold_the_same_values() -> None:
    selection = update(open_dive({}), Picked(DIVE, {"depth": 7}))
    assert selection.of(Group(Dive(depth=2), "dive-")).depth == 7


def test_a_pair_in_a_head_that_nobody_chose_leaves_the_head_free() -> None:
    selection = update(Selection(), PageOpened({}))
    layer, head = selection.shared.layer, selection.shared.head
    pair = update(selection, Clicked(layer, head, "encoder", (1, 2)))
    assert pair.head_is_free and (pair.shared.query, pair.shared.key) == (1, 2)
    assert not update(selection, Clicked(layer, head + 1, "encoder", (1, 2))).head_is_free
    assert update(selection, Picked(SHARED, {"layer": layer, "head": head})).head_is_free
    # A click in a picture of all heads together chooses the layer alone.
    assert update(selection, Clicked(layer + 1, None)).shared.head == head


def test_a_click_in_the_stream_that_is_shown_chooses_no_stream() -> None:
    selection = update(update(Selection(), PageOpened({"model": "translation"})), Filled(SHARED, {"stream": "cross"}))
    assert "stream" not in update(selection, Clicked(0, 1, "cross")).chosen
    assert "stream" in update(selection, Clicked(0, 1, "decoder")).chosen


def test_an_untouched_example_follows_the_model_and_a_typed_text_stays() -> None:
    selection = update(Selection(), PageOpened({}))
    example = update(selection, Picked(SHARED, {"model": "coreference"})).shared.text
    assert example != selection.shared.text
    typed = update(selection, Picked(SHARED, {"text": "My own words."}))
    assert update(typed, Picked(SHARED, {"model": "coreference"})).shared.text == "My own words."


def test_another_text_lets_go_of_the_pair_and_another_model_of_nothing_that_was_chosen() -> None:
    chosen = update(update(Selection(), PageOpened({})), Clicked(2, 3, None, (1, 2)))
    typed = update(chosen, Picked(SHARED, {"text": "Another."}))
    assert (typed.shared.query, typed.shared.key) == (None, None)
    assert (typed.shared.layer, typed.shared.head) == (2, 3) and not typed.head_is_free
    # Of this model it is known where to look first.
    model = update(typed, Picked(SHARED, {"model": "dinov2-small"}))
    assert (model.shared.layer, model.shared.head) == (2, 3)
    free = update(update(Selection(), PageOpened({})), Picked(SHARED, {"model": "dinov2-small"}))
    assert (free.shared.layer, free.shared.head) == (10, 4)


def test_typing_closes_a_file_and_leaves_the_typed_text() -> None:
    before = update(update(Selection(), PageOpened({})), Picked(SHARED, {"text": "Before.", "second": "And after."}))
    opened = update(before, FileOpened(1, {"text": "Of the file.", "second": "", "target": ""}))
    assert opened.file == 1 and opened.shared.text == "Of the file."
    typed = update(opened, Picked(SHARED, {"text": "Typed."}))
    assert typed.file == 0 and typed.under is None
    assert (typed.shared.text, typed.shared.second) == ("Typed.", "And after.")
    # Even the file's own text, which an example may be, is to be run.
    same = update(opened, Picked(SHARED, {"text": "Of the file."}))
    assert same.file == 0 and (same.shared.text, same.shared.second) == ("Of the file.", "And after.")


def test_going_back_leaves_a_file() -> None:
    before = update(update(Selection(), PageOpened({})), Picked(SHARED, {"layer": 2}))
    opened = update(before, FileOpened(1, {"text": "Of the file."}))
    assert opened.shared.layer == 0 and opened.head_is_free
    assert update(opened, PageOpened({})) == opened
    back = update(opened, PageOpened({"text": "Before.", "layer": "1"}, again=True))
    assert (back.file, back.shared.text, back.shared.layer) == (0, "Before.", 1)
    # A pair of the file's goes with the file.
    closed = update(update(opened, Clicked(0, 1, "decoder", (1, 1))), FileClosed())
    assert closed.shared == before.shared and not closed.head_is_free


def test_a_second_file_leaves_what_was_chosen_before_the_first() -> None:
    before = update(update(Selection(), PageOpened({})), Picked(SHARED, {"text": "Before."}))
    opened = update(update(before, FileOpened(1, {"text": "One."})), FileOpened(2, {"text": "Two."}))
    assert (opened.file, opened.shared.text) == (2, "Two.")
    assert update(opened, FileClosed()).shared == before.shared


def test_what_is_picked_before_the_url_is_answered_stays() -> None:
    selection = update(Selection(), PageOpened({"depth": "4", "note": "of the link"}, (DIVE,)))
    picked = answer(update(selection, Picked(DIVE, {"note": "typed"})), DIVE, DEPTHS)
    assert picked.of(DIVE).note == "typed" and picked.of(DIVE).depth == 4


def _deeper(_dive: Dive, before: State, after: State) -> dict[str, int]:
    return {"depth": 3} if before.text != after.text else {}


def test_what_a_link_asks_for_gives_way_to_a_text_that_is_typed_before_it_is_answered() -> None:
    group = Group(Dive(), "follows-", follow=_deeper)
    opened = update(Selection(), PageOpened({"depth": "4", "boat": "large"}, (group,)))
    typed = answer(update(opened, Picked(SHARED, {"text": "typed"})), group, DEPTHS)
    assert typed.of(group).depth == 1 and typed.of(group).boat == "large"
    # Nobody chose what a page fills in while the link is not answered.
    assert answer(update(opened, Filled(SHARED, {"text": "filled"})), group, DEPTHS).of(group).depth == 4


def test_other_pages_follow_also_when_back_leads_to_another_text() -> None:
    group = Group(Dive(), "follows-", follow=_deeper)
    selection = answer(update(Selection(), PageOpened({"depth": "4"}, (group,))), group, DEPTHS)
    back = update(selection, PageOpened({"text": "before"}, (VALUES,), again=True))
    assert back.of(group).depth == 3
    # Back on the page itself its URL says what is shown.
    own = update(selection, PageOpened({"text": "before", "depth": "2"}, (group,), again=True))
    assert answer(own, group, DEPTHS).of(group).depth == 2


def test_a_text_that_comes_after_its_url_changes_nothing_else_that_the_url_says() -> None:
    group = Group(Dive(), "follows-", follow=_deeper)
    selection = answer(update(Selection(), PageOpened({"depth": "4"}, (group,))), group, DEPTHS)
    assert update(selection, Filled(SHARED, {"text": "late"}, late=True)).of(group).depth == 4
    assert update(selection, Filled(SHARED, {"text": "another"})).of(group).depth == 3


def test_a_file_that_is_closed_gives_back_what_it_took() -> None:
    group = Group(Dive(), "follows-", follow=_deeper)
    before = answer(update(Selection(), PageOpened({"depth": "4"}, (group,))), group, DEPTHS)
    before = resolve(update(before, Clicked(0, 1, None, (2, 1))), Ran({"encoder": (4, 4)}, lambda: None))
    opened = update(before, FileOpened(1, {"text": "of the file"}))
    assert (opened.shared.query, opened.of(group).depth) == (None, 3)
    closed = update(opened, FileClosed())
    assert closed.shared == before.shared and closed.of(group).depth == 4 and closed.found_for == before.text
    # What was chosen meanwhile stays, and a text that is typed has none of the pair.
    boat = update(update(opened, Picked(group, {"boat": "large"})), FileClosed())
    assert boat.of(group).boat == "large"
    assert update(opened, Picked(SHARED, {"text": "typed"})).shared.query is None


def test_what_another_page_asks_for_replaces_what_was_chosen_and_what_was_said_of_it() -> None:
    selection = open_dive({"depth": "400"})
    assert selection.part(DIVE).notices
    asked = update(selection, PageOpened({}, (DIVE,), asked={"depth": "2", "of another page": "x"}))
    assert not asked.part(DIVE).notices
    assert answer(asked, DIVE, DEPTHS).of(DIVE).depth == 2


def test_an_example_of_the_page_says_nothing_of_another_model() -> None:
    example = replace(State(), model="induction", stream="decoder")
    opened = update(Selection(), PageOpened({"model": "translation", "stream": "cross"}, example=example))
    assert opened.shared.stream == "cross"
