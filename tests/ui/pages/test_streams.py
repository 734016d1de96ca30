"""A model with three kinds of attention, on the pages that show one of them."""

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page, expect
from safetensors.torch import load_file
from torch.testing import assert_close

import attention_viz as av
from attention_viz.trace.trace import Trace
from tests.conftest import OpenPage
from tests.shipped import shipped
from tests.ui.pages.explore.test_page import choose, downloaded, explorer, parameters, weights_csv

Idle = Callable[[Page], None]

SENTENCE = "the boy finds the key and he sells it"
STREAMS = ("encoder", "decoder", "cross")


@functools.cache
def translated(*edits: av.Allow) -> Trace:
    return shipped("translation").trace(SENTENCE, edits=edits)


def address(page: str, stream: str, more: str = "") -> str:
    return f"{page}?model=translation&text={SENTENCE.replace(' ', '+')}&layer=0&head=1&stream={stream}{more}"


def shown(screen: Page) -> torch.Tensor:
    table = weights_csv(screen)
    return torch.tensor(table.pivot(index="query", columns="key", values="weight").to_numpy()).float()


@pytest.mark.parametrize("stream", STREAMS)
def test_explore_shows_each_kind_of_attention(stay: OpenPage, stream: str) -> None:
    screen = stay(address("/", stream))
    expect(screen.get_by_role("combobox", name=re.compile("Stream"))).to_have_value(re.compile(f"^{stream}: "))
    assert_close(shown(screen), translated().weights(0, 1, stream), atol=1e-6, rtol=0)


def test_it_can_be_chosen_in_the_picker_and_in_the_explorer(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/?model=translation&text=the+boy+finds+the+key&layer=0&head=1")
    assert parameters(screen)["stream"] == "encoder"
    choose(screen, "Stream", "cross: what is said looks at the source", idle)
    expect(explorer(screen).get_by_role("radio", name="cross")).to_be_checked()
    assert set(weights_csv(screen).query_token) == {"le", "garçon", "trouve", "la", "clé", "</s>"}
    explorer(screen).get_by_role("radio", name="decoder").check()
    screen.wait_for_url(re.compile("stream=decoder"))
    idle(screen)
    assert "<pad>" in set(weights_csv(screen).query_token)


@pytest.mark.parametrize("stream", STREAMS)
def test_step_by_step_makes_keys_of_what_they_are_made_of(stay: OpenPage, stream: str, tmp_path: Path) -> None:
    screen = stay(address("/steps", stream, "&step=key&key=1&dimension=2"))
    words = "as the encoder hands it over" if stream == "cross" else "the same vector times a second matrix"
    expect(screen.get_by_text(words)).to_be_visible()
    path = tmp_path / "tensors.safetensors"
    path.write_bytes(downloaded(screen, "Tensors (safetensors)").read_bytes())
    tensors = load_file(path)
    source = tensors["source" if stream == "cross" else "embeddings"]
    assert_close(source @ tensors["key_weight"] + tensors["key_bias"], tensors["key"], atol=1e-4, rtol=1e-4)
    assert_close(
        tensors["embeddings"] @ tensors["query_weight"] + tensors["query_bias"], tensors["query"], atol=1e-4, rtol=1e-4
    )
    assert_close(tensors["weights"], translated().weights(0, 1, stream), atol=1e-6, rtol=0)
    assert ("source" in tensors) == (stream == "cross")


@pytest.mark.parametrize("stream", ["encoder", "decoder"])
def test_a_mask_acts_in_the_stream_that_is_shown(stay: OpenPage, stream: str) -> None:
    screen = stay(address("/masks", stream, "&mask=window&window=2"))
    masked = translated(av.Allow(av.masks.sliding_window(10, 2), stream=stream))
    assert_close(shown(screen), masked.weights(0, 1, stream), atol=1e-6, rtol=0)
    expect(screen.get_by_test_id("stAlert")).to_have_count(0)


@pytest.mark.parametrize("mask", ["causal", "window", "prefix", "drawn", "padding"])
def test_a_mask_that_means_nothing_between_two_texts_is_told_in_words(stay: OpenPage, mask: str) -> None:
    screen = stay(address("/masks", "cross", f"&mask={mask}"))
    expect(screen.get_by_test_id("stAlert")).to_contain_text("the run without a mask")
    assert_close(shown(screen), translated().weights(0, 1, "cross"), atol=1e-6, rtol=0)
    assert parameters(screen)["mask"] == mask
