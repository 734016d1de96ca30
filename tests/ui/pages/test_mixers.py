"""Heads, Compare and Masks with models whose layers mix tokens without a softmax."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy
import pytest
import torch
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.models import load
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.trace.spelling import weight_text
from attention_viz.views.style.wording import share_text
from tests.conftest import OpenPage, Server
from tests.inputs.test_text import byte_tokenizer
from tests.recording.mixers.hybrids import build
from tests.ui.screens import Screen
from tests.ui.served import app

TEXT = "the cat sat"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hybrid with gated delta rules, and one with a matrix per channel."""
    place = tmp_path_factory.mktemp("hybrids")
    for name in ("qwen3_next", "jamba"):
        model = build(name)
        model.resize_token_embeddings(300)
        model.config.eos_token_id = model.config.bos_token_id = None
        model.save_pretrained(place / name)
        byte_tokenizer().save_pretrained(place / name)
    return place


@pytest.fixture
def address(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The address of a page with a hybrid, open to visitors."""
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(folders,)))

    def write(page: str, model: str, **other: Any) -> str:
        parts = {"model": str(folders / model), "text": TEXT, "stream": "mixer", "layer": 0, "head": 1, **other}
        return f"/{page}?{urlencode(parts)}"

    return write


def test_a_mixers_head_is_carried_silenced_and_measured_by_shares(address: Callable[..., str], folders: Path) -> None:
    screen = Screen().open(address("heads", "qwen3_next", silence="on", query=6, key=3))
    model = load(str(folders / "qwen3_next"))
    before, after = (model.trace(TEXT, edits=edits) for edits in ((), [av.Ablate(0, 1, "zero", "mixer")]))
    moved = float(((after.output - before.output).norm(dim=-1) / before.output.norm(dim=-1)).mean())
    told = screen.channel("heads-effect")
    assert f"The output moves by {share_text(moved)} of its length" in told["note"]
    row, names = before.weights(0, 1, "mixer")[6], before.query_tokens("mixer").names
    share = float(abs(row[3]) / abs(row).sum())
    verb = "is taken away from" if row[3] < 0 else "is carried to"
    written = weight_text(float(row[3]))
    assert f"“{names[3]}” {verb} “{names[6]}”: {written}, share of size {weight_text(share)}" in screen.words
    assert "looks at" not in screen.words and "Layer 0 · gated delta, head 1" in screen.words
    assert screen.address["stream"] == "mixer"


def test_a_layer_with_a_matrix_per_channel_is_one_entry_that_is_ablated_whole(
    address: Callable[..., str], folders: Path
) -> None:
    screen = Screen().open(address("heads", "jamba", silence="on", head=7))
    model = load(str(folders / "jamba"))
    before, after = (model.trace(TEXT, edits=edits) for edits in ((), [av.Ablate(0, None, "zero", "mixer")]))
    moved = float(((after.output - before.output).norm(dim=-1) / before.output.norm(dim=-1)).mean())
    told = screen.channel("heads-effect")
    assert f"The output moves by {share_text(moved)} of its length" in told["note"]
    assert "Layer 0 · selective scan, all channels" in screen.words and "arrives at" in screen.words


def test_two_sentences_are_compared_by_signed_shares_of_size(address: Callable[..., str], folders: Path) -> None:
    screen = Screen().open(address("compare", "qwen3_next", other="the dog sat"))
    model = load(str(folders / "qwen3_next"))
    one, other = (model.trace(text).weights(0, 1, "mixer").double() for text in (TEXT, "the dog sat"))
    shares = [weights / weights.abs().sum(dim=-1, keepdim=True) for weights in (one, other)]
    for drawn, wanted in zip(screen.compared_rows(), shares, strict=True):
        there = numpy.isfinite(drawn)
        assert there.any() and numpy.abs(drawn - wanted.numpy())[there].max() < 1e-5
    claim = "".join(text for text, _ in screen.channel("compare-rows")["phrase"])
    assert ", share of size " in claim and " receives " in claim and "attends" not in claim


def test_a_mask_sets_a_mixers_cells_to_0_and_leaves_the_others(address: Callable[..., str], folders: Path) -> None:
    screen = Screen().open(address("masks", "qwen3_next", mask="window", window=3))
    run = screen.channel("masks-board")["run"]
    own = load(str(folders / "qwen3_next")).trace(TEXT).weights(0, 1, "mixer").numpy()
    sent = numpy.frombuffer(base64.b64decode(run["weights"]), "<f4").reshape(own.shape)
    near = numpy.abs(numpy.subtract.outer(numpy.arange(len(own)), numpy.arange(len(own)))) < 3
    assert numpy.abs(sent - own * near).max() < 1e-6 and numpy.abs(own[~near]).max() > 1e-3
    assert max(run["outputs"]) > 0 and "nothing is shared out again" in screen.words
    softmax = Screen().open(address("masks", "qwen3_next", mask="window", window=3, stream="decoder", layer=1))
    assert "Layer 0, without a softmax, get another input" in softmax.words


@pytest.fixture(scope="module")
def served(folders: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Server]:
    """The app with both hybrids open to visitors."""
    with app(tmp_path_factory.mktemp("served"), pytestconfig, ATTENTION_VIZ_MODELS=str(folders)) as server:
        yield server


def test_pages_draw_mixers_in_the_browser(
    served: Server, address: Callable[..., str], open_page: OpenPage, idle: Callable[[Page], None]
) -> None:
    page = open_page(served.address + address("heads", "qwen3_next", view="patterns"))
    atlas = page.get_by_test_id("atlas")
    expect(atlas.locator("[data-head]")).to_have_count(8, timeout=120_000)
    expect(atlas.get_by_role("columnheader")).to_have_text(["Head", "0 · gated delta", "1 · softmax"])
    assert torch.tensor(atlas.locator("canvas").first.evaluate(COLOURS)).unique(dim=0).shape[0] > 8
    # A click on a head of the other kind takes its stream along.
    atlas.locator('[data-layer="decoder 1"][data-head="2"]').click()
    # The card under the pointer has a heading of the same words, and may close when the page moves.
    expect(page.locator("strong").filter(has_text="Layer 1, head 2")).to_be_visible(timeout=60_000)
    idle(page)
    assert "stream=decoder" in page.url
    masks = open_page(served.address + address("masks", "qwen3_next", mask="window", window=3))
    claim = masks.get_by_test_id("mask-claim")
    expect(claim).to_contain_text("the other cells stay", timeout=120_000)
    compare = open_page(served.address + address("compare", "jamba", other="the dog sat"))
    expect(compare.get_by_test_id("compare-claim")).to_contain_text("share of size", timeout=120_000)


# The colours of a picture's pixels.
COLOURS = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return Array.from({length: data.length / 4}, (_, at) => [...data.subarray(4 * at, 4 * at + 3)]);
}"""
