"""The Compare page's URL parameters: read, clamped, reported if they can't be used, and written back."""

from dataclasses import replace

import pytest

import attention_viz as av
from attention_viz.analysis.metrics import METRICS
from attention_viz.serving.models import find
from attention_viz.serving.runs import Run
from attention_viz.sources import CATALOGUE
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import read, write
from attention_viz.ui.pages.compare.choice import (
    CURVES,
    KINDS,
    STEPS,
    TRAINED,
    CompareChoice,
    beside,
    kinds,
    numbers,
    sides,
)
from attention_viz.ui.pages.compare.words import (
    apart_words,
    block_words,
    far_words,
    moved_words,
    token_words,
)
from tests.shipped import MINILM, SMOLLM2

STATE = State()


@pytest.mark.parametrize("what", KINDS)
def test_what_is_written_is_read_again(what: str) -> None:
    choice = CompareChoice(
        what,
        other="a boat",
        other_model="lists",
        align="token",
        other_layer=1,
        other_head=3,
        moment=425,
        other_moment=500,
        metric="previous",
    )
    found, notices = read(CompareChoice(), write(choice), STATE)
    assert notices == []
    assert write(found) == write(choice)


def test_an_address_edited_by_hand_is_answered_part_by_part_and_the_rest_holds() -> None:
    asked = {
        "what": "<b>",
        "other_model": "nobody",
        "moment": "401",
        "metric": "speed",
        "other_head": "12",
        "other": "x",
    }
    choice, notices = read(CompareChoice(), asked, STATE)
    assert choice == replace(CompareChoice(), other="x")
    for part in ("what “<b>”", "other_model “nobody”", "moment “401”", "metric “speed”", "other_head “12”"):
        assert sum(part in one for one in notices) == 1
    assert len(notices) == 5
    assert "0, 275, 350" in next(one for one in notices if "401" in one)


def test_a_head_that_the_second_model_lacks_is_told_and_the_default_is_not() -> None:
    choice, notices = read(CompareChoice(), {"what": "models", "other_model": "lists"}, STATE)
    assert (choice.other_layer, choice.other_head, notices) == (0, 3, [])
    choice, notices = read(CompareChoice(), {"what": "models", "other_model": "lists", "other_layer": "2"}, STATE)
    assert choice.other_layer == 0
    assert "Allowed here: 0 to 1" in notices[0]
    assert numbers(CompareChoice("heads"), STATE) == (range(6), range(12))
    assert numbers(CompareChoice("models", other_model="scratch"), replace(STATE, heads=4)) == (range(1), range(4))


def test_each_kind_runs_what_it_says() -> None:
    for what, changed in {
        "sentences": {"text": "The bank of the city was flooded"},
        "heads": {"layer": 0, "head": 10},
        "models": {"model": "scratch", "layer": 0, "head": 10, "stream": None},
        "edit": {},
    }.items():
        first, second = sides(CompareChoice(what), STATE)
        assert first == STATE
        assert second == replace(STATE, **changed)
    first, second = sides(CompareChoice("snapshots", moment=425), TRAINED)
    assert [find(one.model).revision for one in (first, second)] == ["step-425", "step-1200"]
    assert replace(first, model=TRAINED.model) == replace(second, model=TRAINED.model) == TRAINED


def test_what_a_model_does_not_have_is_not_offered_unless_it_was_asked_for() -> None:
    run = Run(av.scratch("the cat sat"))
    assert kinds(CompareChoice(), STATE) == ["sentences", "models", "heads", "edit"]
    assert kinds(CompareChoice(), TRAINED) == list(KINDS)
    assert kinds(CompareChoice("snapshots"), STATE) == list(KINDS)
    assert kinds(CompareChoice(), TRAINED, run) == ["sentences", "models", "heads"]
    assert "heads" not in kinds(CompareChoice(), replace(STATE, model="scratch", heads=1))


def test_a_real_model_is_compared_with_another_real_one_to_begin_with() -> None:
    for name in (MINILM, SMOLLM2):
        first = replace(STATE, model=name)
        found = beside(first)
        second = replace(CompareChoice("models"), **found)
        assert second.other_model in {MINILM, SMOLLM2} - {name}
        layers, heads = numbers(second, first)
        assert second.other_layer in layers and second.other_head in heads
    assert beside(TRAINED) == {}


def test_a_url_cant_name_a_checkpoint_as_its_model() -> None:
    from attention_viz.serving.permissions import refusal

    for step in STEPS:
        (first, _) = sides(CompareChoice("snapshots", moment=step), TRAINED)
        assert refusal(first.model) is not None
        assert first.model not in CATALOGUE


def test_every_curve_is_a_share_of_weight() -> None:
    assert {METRICS[name].unit for name in CURVES} == {"weight"}
    assert set(CURVES) < set(METRICS) and CompareChoice().metric in CURVES


def test_the_words_say_what_changed_most_and_what_only_one_text_has() -> None:
    one, other = av.scratch("the cat sat", d_model=12, heads=3), av.scratch("the cat ran", d_model=12, heads=3)
    found = av.compare(one, other, 0, 1)
    assert token_words(found) == "Compared with each other: “sat” and “ran”."
    alone = av.compare(one, other, 0, 1, align="token")
    assert token_words(alone) == "− only in the first: “sat”; + only in the second: “ran”."
    change = {
        (query, key): abs(float(found.difference[query, key])) for query in found.queries.both for key in range(3)
    }
    query, key = max(change, key=lambda cell: change[cell])
    assert moved_words(found).startswith(f"Most changed: “{found.queries.names[query]}” at “{found.keys.names[key]}” ")
    assert f"{found.mean:.2f} bits" in apart_words(found) and "3 rows that both have" in apart_words(found)
    assert far_words(found) == f"Second − first, {found.mean:.2f} bits apart"
    same = av.compare(one, one, 0, 1)
    assert token_words(same) == "" and moved_words(same).startswith("No weight differs")
    nothing = av.compare(one, av.scratch("boat", d_model=12, heads=3), 0, 1)
    assert block_words(found, 4_900) == ""
    assert "2 × 2 cells" in block_words(found, 4)
    assert far_words(nothing) == "No token in common" and "no token in common" in apart_words(nothing)
