"""Explore's panel of what comes next: a text grows, its tokens are stepped through, old keys are thrown away."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy
import pytest

import attention_viz as av
from attention_viz.analysis.readings import READINGS, read
from attention_viz.explorer import payload
from attention_viz.explorer.packet import read_packet
from attention_viz.models.continuation import Growing
from attention_viz.models.model import AttentionModel
from attention_viz.serving.run import Request
from attention_viz.serving.runs import run_request
from attention_viz.ui.pages.explore import candidates
from tests.shipped import shipped
from tests.ui.screens import Screen

TEXT = "moon cheese frog ring moon cheese"
PLACE = f"/?model=induction&text={TEXT.replace(' ', '+')}&layer=1&head=1"


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one thing after the other."""
    return Screen().open(PLACE)


@pytest.fixture(autouse=True)
def in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scroll to everything at once."""

    def seen(*_: object) -> bool:
        return True

    monkeypatch.setattr(candidates, "in_sight", seen)


def bars(screen: Screen, key: str) -> dict[str, Any]:
    """What stands before the numbers of bars."""
    (found,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith(f"-{key}")]
    return read_packet(found)[0]


def grown(tokens: int, evict: av.Evict | None = None) -> av.Trace:
    *_, last = shipped("induction").generate(TEXT, tokens, evict=evict)
    return last


def _never(*_: object, **__: object) -> None:
    pytest.fail("the text was run again")


def cells(screen: Screen) -> numpy.ndarray:
    return numpy.nan_to_num(screen.matrix("cache"), nan=-1)


def test_the_explorer_ends_with_the_token_that_is_looked_at(screen: Screen) -> None:
    def tokens() -> list[str]:
        return screen.packed()["axes"][0]["labels"]

    screen.back_to(f"{PLACE}&more=3")
    every = list(grown(3).query_tokens().labels)
    assert tokens() == every
    screen.press("‹ Earlier").press("‹ Earlier")
    assert tokens() == every[:-2]
    screen.press("Later ›").press("Later ›")
    assert tokens() == every


@pytest.mark.parametrize("reading", [name for name in READINGS if name != "raw"])
def test_another_reading_is_that_of_the_text_up_to_the_step(screen: Screen, reading: str) -> None:
    screen.back_to(f"{PLACE}&more=3&back=2&reading={reading}")
    assert not screen.alerts
    assert screen.packed()["axes"][0]["labels"] == list(grown(1).query_tokens().labels)
    shown = read(reading, grown(1), shipped("induction"))
    head = 1 if READINGS[reading].per_head else 0
    assert abs(screen.weights() - shown.weights(1, head).numpy()).max() < 1e-5


def test_whole_words_are_those_of_the_text_up_to_the_step(screen: Screen) -> None:
    screen.back_to(f"{PLACE}&more=3&back=2&words=on")
    expected = av.merge_words(grown(1))
    assert screen.packed()["axes"][0]["labels"] == list(expected.query_tokens().labels)
    assert abs(screen.weights() - expected.weights(1, 1).numpy()).max() < 1e-5


def test_a_long_text_stays_whole_and_its_step_is_the_row_that_is_chosen(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload, "LONG", 10)
    text = "frog ring " + TEXT  # nobody has packed it before
    screen.back_to(f"{PLACE.replace('text=', 'text=frog+ring+')}&more=3&back=1")
    *_, last = shipped("induction").generate(text, 3)
    assert len(screen.packed()["axes"][0]["labels"]) == len(last.query_tokens())
    assert "A long text stays whole" in screen.words
    position = len(last.query_tokens()) - 2
    row = last.weights(1, 1)[position].clone()
    row[0] = 0
    told = screen.channel("explorer")
    assert (told["query"], told["key"]) == (position, int(row.argmax()))
    screen.press("Later ›")
    assert "A long text stays whole" not in screen.words and screen.channel("explorer")["query"] is None


def test_before_it_goes_on_there_is_nothing_to_step_through(screen: Screen) -> None:
    screen.back_to(PLACE)
    assert not [one for one in screen.all("button") if one.label in ("‹ Earlier", "Later ›")]
    assert not [one for one in screen.all("plotly_chart") if getattr(one, "key", None) == "cache"]


def test_each_token_that_the_model_added_can_be_looked_at(screen: Screen) -> None:
    screen.back_to(f"{PLACE}&more=3")
    trace = grown(3)
    last = len(trace.query_tokens()) - 1
    assert "3 of 3" in screen.words and bars(screen, f"candidates-{last}")
    weights = trace.weights(1, 1).numpy()
    assert abs(cells(screen)[-1] - weights[last]).max() < 1e-6
    screen.press("‹ Earlier")
    assert screen.address["back"] == "1"
    assert "2 of 3" in screen.words and "After “ring₂”, the model generated “moon₃”" in screen.words
    assert bars(screen, f"candidates-{last - 1}")
    assert cells(screen).shape == (3, last)
    assert abs(cells(screen)[-1] - weights[last - 1, :last]).max() < 1e-6
    assert f"{last} keys and values in each of" in screen.words
    screen.press("‹ Earlier").press("‹ Earlier")
    assert screen.picker("‹ Earlier").disabled and "0 of 3" in screen.words
    screen.press("Later ›")
    assert screen.address["back"] == "2"


def test_one_more_token_shows_what_comes_after_it(screen: Screen) -> None:
    screen.back_to(f"{PLACE}&more=3&back=2").press("One more token")
    assert screen.address["more"] == "4" and "back" not in screen.address
    assert "4 of 4" in screen.words


def test_a_link_opens_at_its_step_and_one_beyond_the_text_is_brought_back() -> None:
    assert "2 of 4" in Screen().open(f"{PLACE}&more=4&back=2").words
    other = Screen().open(f"{PLACE}&more=2&back=7")
    assert any("back “7”" in one for one in other.warnings) and "2 of 2" in other.words


def test_old_keys_can_be_thrown_away_and_the_badge_says_that_it_is_not_the_models_own(screen: Screen) -> None:
    screen.back_to(f"{PLACE}&more=8")
    assert "not the model's own" not in screen.words
    screen.pick("Evict old keys", True).pick("First keys kept", 1).pick("Recent keys kept", 2)
    assert (screen.address["evict"], screen.address["first_keys"], screen.address["last_keys"]) == ("on", "1", "2")
    trace = grown(8, av.Evict(1, 2))
    assert (
        tuple(screen.table().drop_duplicates("query").sort_values("query").query_token) == trace.query_tokens().labels
    )
    assert abs(screen.weights() - trace.weights(1, 1).numpy()).max() < 1e-6
    assert "Verified to" in screen.words and "not the model's own" in screen.words
    assert "4 keys and values in each of" in screen.words and "older ones evicted" in screen.words
    hatched = [one for one in screen.figure("cache")["data"] if one["type"] == "scatter"]
    assert hatched
    screen.pick("Evict old keys", False)
    assert "evict" not in screen.address and "not the model's own" not in screen.words


def test_tokens_can_be_sampled_and_each_step_says_how_likely_its_token_was(screen: Screen) -> None:
    screen.back_to(f"{PLACE}&more=4")
    screen.pick("Sample tokens", True).pick("Temperature", 3.0).pick("Top-p", 0.95).pick("Seed", 12)
    wanted = {"sample": "on", "temperature": "3", "top_p": "0.95", "sampling_seed": "12"}
    assert {name: screen.address[name] for name in wanted} == wanted and "seed" not in screen.address
    model = shipped("induction")
    *_, trace = model.generate(TEXT, 4, sample=True, temperature=3.0, top_p=0.95, seed=12)
    assert trace.query_tokens() != grown(4).query_tokens()
    assert screen.packed()["axes"][0]["labels"] == list(trace.query_tokens().labels)
    assert abs(screen.weights() - trace.weights(1, 1).numpy()).max() < 1e-6
    screen.press("‹ Earlier")
    (likely,) = model.chances(trace)["probability"][-1:]
    assert f"with probability {likely:.2f} and rank " in screen.words
    # One more token is drawn as in one run of five.
    screen.press("One more token")
    *_, longer = model.generate(TEXT, 5, sample=True, temperature=3.0, top_p=0.95, seed=12)
    assert screen.packed()["axes"][0]["labels"] == list(longer.query_tokens().labels)
    screen.pick("Sample tokens", False)
    assert not {*wanted} & {*screen.address}


def test_a_link_gives_the_same_sampled_tokens_and_names_impossible_options() -> None:
    place = f"{PLACE}&more=2&sample=on&temperature=2.5&sampling_seed=3"
    *_, trace = shipped("induction").generate(TEXT, 2, sample=True, temperature=2.5, seed=3)
    assert Screen().open(place).packed()["axes"][0]["labels"] == list(trace.query_tokens().labels)
    other = Screen().open(f"{PLACE}&more=2&sample=on&temperature=0&top_p=nan")
    for asked in ("temperature “0”. Allowed here: 0.05 to 5", "top_p “nan”. Allowed here: 0.01 to 1"):
        assert any(asked in one for one in other.warnings)


def test_where_a_model_refuses_to_throw_keys_away_the_switch_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Growing.check

    def refuse(growing: Growing, evict: av.Evict | None) -> None:
        check(replace(growing, stepping=cast("Any", SimpleNamespace(evicts=False))), evict)

    monkeypatch.setattr(Growing, "check", refuse)
    screen = Screen().open("/?model=induction&text=ring+moon+ring&more=2&evict=on&last_keys=3")
    assert any("can't evict keys" in one for one in screen.alerts)
    screen.pick("Evict old keys", False)
    assert not screen.alerts and "2 of 2" in screen.words


def test_another_token_is_one_step_from_the_trace_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request("induction", "ring ring moon", more=2)
    before = run_request(request).trace
    monkeypatch.setattr(AttentionModel, "generate", _never)
    after = run_request(Request("induction", "ring ring moon", more=3)).trace
    assert after.query_tokens().numbers[:-1] == before.query_tokens().numbers
    assert after.fidelity.ok
