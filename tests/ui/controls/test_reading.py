"""How weights are read on the pages: the numbers are the library's, and the page says what they are."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect
from safetensors.torch import load
from torch.testing import assert_close

import attention_viz as av
from attention_viz.analysis.readings import READINGS
from attention_viz.analysis.readings import read as library_read
from attention_viz.errors import TraceError
from attention_viz.models.model import AttentionModel
from attention_viz.serving import runs as serving
from attention_viz.serving.runs import Run
from attention_viz.trace.derived import merge_words
from attention_viz.trace.given.from_weights import shares
from attention_viz.trace.trace_data import behind
from attention_viz.ui.address import State, read_address, write_address
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.parts.readings import read
from tests.conftest import OpenPage
from tests.pages import exported, open_menu
from tests.ui.pages.explore.test_page import choose, readout
from tests.ui.screens import Screen

Idle = Callable[[Page], None]

PIECES = "The tokenizer unbelievably splits words"


def test_the_switch_has_every_reading_under_its_own_name() -> None:
    for name, one in READINGS.items():
        state = State(reading=name)
        assert readings.together(state) is not one.per_head
        assert readings.head(state) == (4 if one.per_head else 0)
        assert read_address(write_address(state)) == (state, [])


def test_a_reading_that_there_is_not_is_told_and_the_weights_are_shown() -> None:
    state, (notice,) = read_address({"reading": "chance", "words": "on"})
    assert state == State(words="on")
    assert f"asks for reading “chance”. Allowed here: {', '.join(READINGS)}." in notice


def test_a_reading_is_made_once_and_keeps_no_run_alive() -> None:
    state = State(text="The bank", reading="norm")
    run = serving.run_request(state.request)
    assert read(run, replace(state, reading="raw")) is run
    found = read(run, state)
    assert read(run, replace(state, head=7)) is found
    model = av.load("all-MiniLM-L6-v2")
    assert isinstance(model, AttentionModel)
    expected = shares(av.norm_weighted(model, run.trace, 0)).float()
    assert_close(found.trace.attention(0).weights, expected, rtol=1e-4, atol=1e-6)
    words = read(run, replace(state, words="on"))
    assert words is not found and words.trace.provenance.reading == "norm"
    assert not found.trace.differentiable and behind(found.trace).complete is None and found.trace.fidelity.ok


def test_what_would_take_long_and_what_a_file_cannot_tell_is_refused_by_name() -> None:
    state = State(text=" ".join(["bank"] * 60), reading="flow")
    with pytest.raises(TraceError, match="with 6 layers this app allows at most 29 tokens, and this text has 62"):
        read(serving.run_request(state.request), state)
    with pytest.raises(TraceError, match="6 layers of this size, this app allows 75 tokens; this text has 102"):
        long = replace(state, text=" ".join(["bank"] * 100), reading="zeroing")
        read(serving.run_request(long.request), long)
    short = replace(state, text="The bank", reading="gradient")
    file = Run(serving.run_request(short.request).trace.detached())
    with pytest.raises(TraceError, match="needs a trained model; traces from files have none"):
        read(file, short)


def test_explore_shows_a_reading_on_the_first_screen_and_names_it(stay: OpenPage, idle: Idle) -> None:
    page = stay(f"/?reading=rollout&layer=3&head=4&text={PIECES.replace(' ', '+')}")
    expect(readout(page)).to_have_text("Layer 3 · Rollout")
    expect(page.get_by_role("combobox", name="Head")).to_have_value("All heads")
    expect(page.get_by_role("combobox", name="Head")).to_be_disabled()
    for part in ("explorer-arcs", "explorer-grid", "explorer-heatmap"):
        box = page.get_by_test_id(part).bounding_box()
        assert box is not None and box["y"] + box["height"] <= 860, part
    open_menu(page, "Options")
    choose(page, "Reading", "Gradients", idle)
    expect(readout(page)).to_have_text("Head 3·4 · Gradients")
    open_menu(page, "Options").get_by_text("Whole words").click()
    idle(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Masks")).to_have_attribute("href", re.compile("reading=gradient"))
    assert (
        exported(page, "Weights (CSV)").suggested_filename
        == "attention_all-MiniLM-L6-v2_layer3_head4_gradient_words.csv"
    )


def test_a_reading_is_explained_and_handed_out() -> None:
    trace = av.load("all-MiniLM-L6-v2").trace(PIECES)
    screen = Screen().open(f"/?reading=rollout&layer=3&head=4&text={PIECES.replace(' ', '+')}")
    assert "Verified" in screen.words
    one = READINGS["rollout"]
    for part in (one.meaning, f"It doesn’t show: {one.limits[:1].lower()}{one.limits[1:]}", "head 4 stays chosen"):
        assert part in screen.words
    assert abs(screen.weights() - av.rollout(trace)[3].numpy()).max() < 1e-5
    screen.pick("Reading", "gradient")
    assert "half the squared length of the mean output vector" in screen.words
    assert "Clark et al. 2019" in screen.pick("Whole words", True).words
    asked = screen.address
    assert (asked["reading"], asked["words"], asked["head"]) == ("gradient", "on", "4")
    expected = merge_words(library_read("gradient", trace)).weights(3, 4).numpy()
    assert abs(screen.weights() - expected).max() < 1e-4
    tensors = load(screen.download("Tensors (safetensors)"))
    assert_close(tensors["weights"], trace.weights(3, 4), atol=1e-5, rtol=1e-4)
    assert abs(tensors["reading_gradient_of_words"].numpy() - expected).max() < 1e-4


def test_on_the_cross_attention_page_a_reading_that_there_is_not_is_told_in_its_place() -> None:
    screen = Screen().open("/cross?reading=rollout")
    assert "Rollout needs self-attention" in screen.words and "Verified" in screen.words
    screen.pick("Reading", "norm")
    model = av.load("translation")
    assert isinstance(model, AttentionModel)
    trace = model.trace("the tired girl finds the red key")
    expected = library_read("norm", trace, model, "cross").weights(0, 1).numpy()
    assert abs(screen.weights() - expected).max() < 1e-5
