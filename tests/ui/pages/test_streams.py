"""A model with three kinds of attention, on the pages that show one of them."""

import functools
import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Page, expect
from safetensors.torch import load
from torch.testing import assert_close

import attention_viz as av
from attention_viz.trace.trace import Trace
from tests.conftest import OpenPage
from tests.shipped import shipped
from tests.ui.pages.explore.test_page import explorer
from tests.ui.screens import Screen

SENTENCE = "the boy finds the key and he sells it"
STREAMS = ("encoder", "decoder", "cross")


@functools.cache
def translated(*edits: av.Allow) -> Trace:
    return shipped("translation").trace(SENTENCE, edits=edits)


def address(path: str, stream: str, more: str = "") -> str:
    return f"{path}?model=translation&text={SENTENCE.replace(' ', '+')}&layer=0&head=1&stream={stream}{more}"


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one kind of attention after the other."""
    return Screen().open(address("/", "encoder"))


def shown(screen: Screen) -> torch.Tensor:
    return torch.tensor(screen.weights()).float()


@pytest.mark.parametrize("stream", STREAMS)
def test_explore_shows_each_kind_of_attention(screen: Screen, stream: str) -> None:
    screen.back_to(address("/", stream))
    assert screen.picker("Stream").value == stream == screen.channel("explorer")["stream"]
    assert_close(shown(screen), translated().weights(0, 1, stream), atol=1e-6, rtol=0)


def test_it_can_be_chosen_in_the_picker(screen: Screen) -> None:
    screen.back_to("/?model=translation&text=the+boy+finds+the+key&layer=0&head=1&stream=encoder")
    screen.pick("Stream", next(one for one in screen.picker("Stream").options if one == "cross"))
    assert screen.channel("explorer")["stream"] == "cross" == screen.address["stream"]
    assert set(screen.table().query_token) == {"le", "garçon", "trouve", "la", "clé", "</s>"}


def test_it_can_be_chosen_in_the_explorer(stay: OpenPage, idle: Callable[[Page], None]) -> None:
    page = stay("/?model=translation&text=the+boy+finds+the+key&layer=0&head=1&stream=cross")
    expect(explorer(page).get_by_role("radio", name="cross")).to_be_checked()
    explorer(page).get_by_role("radio", name="decoder").check()
    page.wait_for_url(re.compile("stream=decoder"))
    idle(page)
    expect(page.get_by_role("combobox", name=re.compile("Stream"))).to_have_value("decoder")


@pytest.mark.parametrize("stream", STREAMS)
def test_step_by_step_makes_keys_of_what_they_are_made_of(screen: Screen, stream: str) -> None:
    screen.back_to(address("/steps", stream, "&step=key&key=1&dimension=2"))
    words = (
        "its vector m from the encoder, times a second"
        if stream == "cross"
        else "the same vector times a second matrix"
    )
    assert words in screen.words
    tensors = load(screen.download("Tensors (safetensors)"))
    source = tensors["source" if stream == "cross" else "embeddings"]
    assert_close(source @ tensors["key_weight"] + tensors["key_bias"], tensors["key"], atol=1e-4, rtol=1e-4)
    assert_close(
        tensors["embeddings"] @ tensors["query_weight"] + tensors["query_bias"], tensors["query"], atol=1e-4, rtol=1e-4
    )
    assert_close(tensors["weights"], translated().weights(0, 1, stream), atol=1e-6, rtol=0)
    assert ("source" in tensors) == (stream == "cross")


@pytest.mark.parametrize("stream", ["encoder", "decoder"])
def test_a_mask_acts_in_the_stream_that_is_shown(screen: Screen, stream: str) -> None:
    screen.back_to(address("/masks", stream, "&mask=window&window=2"))
    masked = translated(av.Allow(av.masks.sliding_window(10, 2), stream=stream))
    assert_close(shown(screen), masked.weights(0, 1, stream), atol=1e-6, rtol=0)
    assert not screen.alerts


def test_masks_open_on_a_stream_that_takes_one(screen: Screen) -> None:
    # The best finding of this text is in cross-attention.
    assert screen.back_to("/?model=translation").address["stream"] == "cross"
    for place in ("/masks?model=translation", "/masks?model=translation&stream=decoder"):
        board = screen.back_to(place).channel("masks-board")
        assert not board["locked"] and any(board["run"]["outputs"])
    crossing = screen.back_to("/masks?model=translation&stream=cross")
    board = crossing.channel("masks-board")
    assert board["locked"] and board["elsewhere"] == "encoder" and board["choice"]["mask"] == "none"
    assert not screen.alerts


def test_two_sentences_are_no_mask_for_a_model_of_one_text(screen: Screen) -> None:
    screen.back_to(address("/masks", "encoder", "&mask=padding"))
    assert any("reads one text at a time here" in one for one in screen.alerts)
    assert screen.address["mask"] == "none" and not screen.channel("masks-board")["locked"]


@pytest.mark.parametrize("mask", ["causal", "window", "prefix", "drawn", "padding"])
def test_a_mask_that_means_nothing_between_two_texts_is_told_in_words(screen: Screen, mask: str) -> None:
    screen.back_to(address("/masks", "cross", f"&mask={mask}"))
    assert any("the run without a mask" in one for one in screen.alerts)
    assert_close(shown(screen), translated().weights(0, 1, "cross"), atol=1e-6, rtol=0)
    assert screen.address["mask"] == mask
