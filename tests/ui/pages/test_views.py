"""What pages decide, as plain functions of a run and a selection: no page is drawn here, and no browser is needed."""

from dataclasses import asdict, replace
from typing import Any

import pytest

import attention_viz as av
from attention_viz.serving.runs import Run, run_request
from attention_viz.ui.address import State, own_example
from attention_viz.ui.pages.compare import page as compare_page
from attention_viz.ui.pages.compare.choice import COMPARE_CHOICES, CompareChoice, beside, contrast
from attention_viz.ui.pages.cross import page as cross_page
from attention_viz.ui.pages.cross import view as cross
from attention_viz.ui.pages.explore import view as explore
from attention_viz.ui.pages.explore.page import EXPLORE
from attention_viz.ui.pages.heads import view as heads
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.pages.learn import view as learn
from attention_viz.ui.pages.learn.page import LEARN_CHOICES
from attention_viz.ui.pages.masks import page as masks_page
from attention_viz.ui.pages.masks.page import MASK_CHOICES
from attention_viz.ui.pages.steps import view as steps
from attention_viz.ui.pages.steps.page import STEP_CHOICES
from attention_viz.ui.pages.steps.view import OpenRun
from attention_viz.ui.pages.why import view as why
from attention_viz.ui.pages.why.page import WHY_CHOICES
from attention_viz.ui.runner.loading import ReadStudy
from attention_viz.ui.runner.page import Parts
from attention_viz.ui.selection import SHARED, FileOpened, Filled, Group, PageOpened, Picked, Selection, update
from tests.shipped import MINILM, SMOLLM2

# Compare has a name of before that another page has today.
ALL = (EXPLORE, STEP_CHOICES, MASK_CHOICES, HEADS_CHOICES, WHY_CHOICES, LEARN_CHOICES)
COPY = {"model": "induction", "text": "moon cheese frog ring moon cheese"}
BOY = {"model": "translation", "text": "the boy finds the key", "stream": "cross"}


def opened(**address: str) -> Selection:
    return update(Selection(), PageOpened(address, ALL))


def picked(selection: Selection, group: Group[Any], **values: Any) -> Selection:
    return update(selection, Picked(group, values))


def run(selection: Selection) -> Run:
    return run_request(selection.shared.request)


def slots(parts: Parts) -> list[str]:
    return [part.slot for part in parts.parts]


def explored(run: Run, shown: Run | None) -> explore.ExploreStudy:
    return explore.ExploreStudy(run, run, 0, run, shown)


def test_explore_opens_on_the_best_finding_and_stays_on_a_head_that_somebody_chose() -> None:
    free = opened(**COPY)
    drawn = run(free)
    found = explore.settle(free, drawn)
    assert (found.shared.layer, found.shared.head) == (drawn.findings[0].layer, drawn.findings[0].head)
    assert explore.settle(found, drawn) == found
    chosen = picked(free, SHARED, layer=0, head=1)
    assert explore.settle(chosen, drawn).shared == chosen.shared


def test_explore_exports_nothing_of_a_reading_that_cant_be_had() -> None:
    selection = opened(**COPY)
    drawn = run(selection)
    whole, none = (explore.view(explored(drawn, shown), selection) for shown in (drawn, None))
    assert "picture" in slots(whole) and whole.exports is not None and whole.slides is not None
    assert "picture" not in slots(none) and none.exports is None and none.slides is None
    assert [one for _, one in none.runs] == [drawn]


def test_explore_goes_back_to_the_last_token_when_the_model_goes_on_by_another_number() -> None:
    selection = picked(picked(opened(**COPY), SHARED, more=3), EXPLORE, back=2)
    selection = picked(explore.settle(selection, run(selection)), SHARED, more=4)
    part = selection.part(EXPLORE)
    assert part.value.back == 0


def test_cross_attention_offers_an_example_for_a_model_without_any() -> None:
    assert cross_page.PAGE.unfit(State(model="induction")) is not None
    assert cross_page.PAGE.unfit(State(model="translation")) is None


def test_cross_attention_shows_what_is_said_also_where_a_reading_cant_be_had() -> None:
    selection = opened(**BOY)
    drawn = run(selection)
    assert slots(cross.view(ReadStudy(drawn, drawn), selection)) == ["notes", "said", "picture", "words"]
    assert slots(cross.view(ReadStudy(drawn, None), selection)) == ["notes", "said"]


@pytest.mark.parametrize("step", ["pipeline", "scores"])
def test_an_open_step_is_a_drawer_over_the_pipeline_which_stays_with_its_list(step: str) -> None:
    selection = opened(**COPY, step=step)
    drawn = run(selection)
    opens = steps.StepsStudy(drawn, OpenRun(drawn.trace))
    parts = slots(steps.view(opens, steps.settle(selection, opens)))
    assert {"pipeline", "below", "rest"} <= {*parts} and ("drawer" in parts) == (step != "pipeline")


def test_half_a_pair_in_a_link_is_completed_and_is_then_the_pair_of_all_pages() -> None:
    selection = opened(**COPY, query="4", layer="1", head="1")
    drawn = run(selection)
    opens = steps.StepsStudy(drawn, OpenRun(drawn.trace))
    found = steps.settle(selection, opens)
    choice = found.of(STEP_CHOICES)
    assert (found.shared.query, found.shared.key) == (choice.query, choice.key) == (4, choice.key)
    assert steps.settle(found, opens) == found


def test_a_step_that_cant_be_opened_is_shown_as_its_error() -> None:
    selection = opened(**COPY)
    drawn = run(selection)
    error = av.errors.UnsupportedModel("no such variant")
    parts = steps.view(steps.StepsStudy(drawn, error), selection)
    assert slots(parts) == ["notes", "picture"] and parts.exports is None
    with pytest.raises(av.errors.UnsupportedModel, match="no such variant"):
        parts.parts[-1].draw()


def test_a_batch_takes_the_place_of_a_pair_and_nothing_that_the_model_added_is_masked() -> None:
    selection = picked(opened(**COPY, mask="padding"), SHARED, second="A boat", more=3)
    state = masks_page.PAGE.state(selection)
    assert (state.second, state.more) == ("", 0)
    assert "second" not in masks_page.PAGE.address(selection)
    alone = masks_page.PAGE.state(picked(selection, MASK_CHOICES, mask="none"))
    assert alone.second == "A boat"


def test_no_mask_is_put_on_a_file() -> None:
    selection = opened(**COPY, mask="causal")
    assert masks_page.mask_of(selection).mask == "causal"
    assert masks_page.mask_of(update(selection, FileOpened(1, {"text": "of a file"}))).mask == "none"


def test_a_link_of_before_that_names_a_metric_alone_means_the_atlas_that_it_colours() -> None:
    selection = opened(**COPY, metric="entropy")
    assert heads.settle(selection, run(selection)).of(HEADS_CHOICES).view == "colours"
    selection = opened(**COPY, metric="entropy", view="map")
    assert heads.settle(selection, run(selection)).of(HEADS_CHOICES).view == "map"


def test_why_opens_a_next_word_of_a_model_that_was_trained_and_of_no_file() -> None:
    selection = opened(**COPY)
    drawn = run(selection)
    assert not why.why_not(drawn, selection.shared)
    assert "trace from a file" in why.why_not(Run(drawn.trace), selection.shared)
    own = opened(model="scratch", text="the cat")
    assert "random weights" in why.why_not(run(own), own.shared)
    assert slots(why.view(why.WhyStudy(Run(drawn.trace), None), selection)) == ["notes", "board"]  # pyright: ignore


def test_why_shows_cross_attention_in_place_of_an_encoder_that_says_nothing() -> None:
    selection = opened(**{**BOY, "stream": "encoder"})
    drawn = run(selection)
    found = why.settle(selection, drawn)
    assert found.shared.stream == "cross" and why.settle(found, drawn) == found
    pair = picked(selection, WHY_CHOICES, why="pair")
    assert why.settle(pair, drawn).shared.stream == "encoder"


def test_compare_carries_changes_in_its_url_only_where_a_change_is_compared() -> None:
    selection = opened(**COPY)
    assert "edits" not in compare_page.PAGE.address(picked(selection, COMPARE_CHOICES, what="heads"))
    assert compare_page.PAGE.address(picked(selection, COMPARE_CHOICES, what="edit"))["edits"] == ""


def test_the_course_opens_on_a_lesson_that_there_is_and_forgets_a_guess_about_another_text() -> None:
    selection = learn.settle(opened(text="the cat sat", lesson="nonsense"), learn.Course("the cat sat", ""))
    choice = selection.of(LEARN_CHOICES)
    assert choice.lesson and choice.lesson != "nonsense" and selection.part(LEARN_CHOICES).notices
    selection = picked(selection, LEARN_CHOICES, guess="shown", word=1)
    other = picked(selection, SHARED, text="the dog sat").of(LEARN_CHOICES)
    assert (other.guess, other.word, other.lesson) == ("", None, choice.lesson)


# In each of these the head that wrote most of a word has its own link at another word, whose writer leads back.
@pytest.mark.parametrize("text", ["the girl loves the key", "the boy finds the red house", "the cat loves the key"])
def test_why_settles_on_one_head_where_two_lead_to_each_other(text: str) -> None:
    selection = opened(**{**BOY, "text": text})
    drawn = run(selection)
    found = why.settle(selection, drawn)
    assert why.settle(found, drawn) == found
    part = selection.part(SHARED)
    places = [(layer, head) for layer in found.shared.layers for head in range(found.shared.head_count)]
    for layer, head in places:
        start = selection.having(SHARED, replace(part, value=replace(part.value, layer=layer, head=head)))
        end = why.settle(start, drawn)
        assert why.settle(end, drawn) == end


def test_the_second_side_follows_the_first_until_somebody_chooses_it() -> None:
    start = replace(State(), model=MINILM, text=own_example(MINILM))
    brought = replace(CompareChoice(), what="models", other=contrast(start), **beside(start))
    selection = update(update(Selection(), PageOpened({})), Filled(COMPARE_CHOICES, asdict(brought)))
    moved = update(selection, Picked(SHARED, {"model": SMOLLM2}))
    assert moved.of(COMPARE_CHOICES).other == contrast(moved.shared) != brought.other
    assert moved.of(COMPARE_CHOICES).other_model == MINILM
    chosen = update(selection, Picked(COMPARE_CHOICES, {"other_model": "induction", "other": "typed"}))
    kept = update(chosen, Picked(SHARED, {"model": SMOLLM2})).of(COMPARE_CHOICES)
    assert (kept.other_model, kept.other) == ("induction", "typed")
