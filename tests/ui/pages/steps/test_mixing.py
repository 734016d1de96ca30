"""The Step by step page of a layer without a softmax: a real hybrid in a folder, its numbers against the library's."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy
import pytest
import safetensors.torch
import torch
from playwright.sync_api import Page, expect

from attention_viz import Trace, load
from attention_viz.circuits.layers.layer_flow import layer_flow
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.sources import CATALOGUE
from attention_viz.steps.mixing import open_mixer
from attention_viz.steps.pair import erasers, open_pair
from attention_viz.trace.spelling import weight_text
from tests.conftest import OpenPage
from tests.explorer.test_pipeline_payload import unpacked
from tests.ui.screens import Screen


@pytest.fixture
def address(models: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A hybrid whose layer 0 is a selective scan."""
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(models,)))
    return f"/steps?model={quote(str(models / 'hybrid'), safe='')}&text=abcdefgh&stream=mixer&layer=0&head=3"


def pipeline(screen: Screen) -> tuple[dict[str, Any], dict[str, numpy.ndarray], dict[str, Any]]:
    """What stands before the numbers that the pipeline is sent, the numbers, and what its channel has."""
    (sent,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-steps-pipeline")]
    return *unpacked(sent), screen.channel("steps-pipeline")


def test_a_pair_of_a_mixer_opens_from_the_address(address: str, models: Path) -> None:
    screen = Screen().open(f"{address}&query=5&key=2")
    trace = load_folder(models / "hybrid", "mine").trace("abcdefgh")
    weights = trace.weights(0, 3, stream="mixer")
    header, arrays, told = pipeline(screen)
    assert (told["layer"], told["head"], told["stream"], told["query"], told["key"]) == (0, 3, "mixer", 5, 2)
    mixer = header["mixer"]
    assert (mixer["kind"], mixer["per"], header["heads"]) == ("selective scan", "channel", weights_of(trace))
    assert [label for _, label, *_ in mixer["stages"]] == ["Read", "Decayed", "Written", "With skip", "Gated"]
    numpy.testing.assert_allclose(arrays["weights"], weights, atol=1e-6)
    numpy.testing.assert_allclose(arrays["stage gate"][5, 2], weights[5, 2], rtol=1e-4)
    assert abs(arrays["stage skip"][5, 2] - arrays["stage gate"][5, 2]) > 1e-6
    whole = trace.attention(0, "mixer").output[:, 5, 0]
    numpy.testing.assert_allclose(arrays["heads"][5], whole, atol=1e-6)
    # The rest of the layer comes beside it, by its name.
    (rest,) = [one.proto.bytes for one in screen.all("bidi_component") if one.proto.id.endswith("-steps-rest")]
    beside, numbers = unpacked(rest)
    assert beside["of"] == header["rest"] and [kind for _, kind in beside["strips"]][:3] == ["entered", "mixer", "sum"]
    own = layer_flow(trace, 0, "mixer").parts[0]
    numpy.testing.assert_allclose(numbers["lengths"][:, 1], own.added.norm(dim=-1), rtol=1e-4)
    assert beside["end"]["kind"] == "next words" and len(beside["end"]["words"][5]) == 5


def weights_of(trace: Trace) -> int:
    """How many channels the layer has."""
    return trace.attention(0, "mixer").shape[0]


def test_a_step_of_a_mixer_has_its_matrix_and_its_cells(address: str) -> None:
    screen = Screen().open(f"{address}&step=weights&query=5&key=2")
    assert screen.address["stream"] == "mixer" and not screen.alerts
    assert "Rows don't sum to 1" in screen.words
    screen.pick("Step", "kept")
    assert "How much of each token's write is still there" in screen.words and not screen.alerts
    for step in ("write", "decayed", "output"):
        screen.pick("Step", step)
        assert not screen.alerts


def test_the_matrix_after_erasing_names_the_tokens_that_erased_it() -> None:
    screen = Screen().open("/steps?model=recall&stream=mixer&layer=0&head=0&step=erased&query=11&key=5")
    opened = open_mixer(load("recall").trace(str(screen.picker("Sentence").value)), 0, 0)
    pair = open_pair(opened, 11, 5)
    (total,) = re.findall(r'data-testid="total">(.*?)</b>', "\n".join(screen.written))
    assert float(total.replace("−", "-")) == pytest.approx(pair.reading, abs=1e-5)
    numbers = re.findall(r'steps-number *">(.*?)</td>', screen.part("erasers"))
    first = erasers(pair)[0]
    assert [float(one.replace("−", "-")) for one in numbers[:3]] == pytest.approx(
        [-first.erased, first.without, first.change], abs=1e-5
    )


def test_a_model_without_attention_opens_its_mixer_with_keys_to_press_tensors_and_slides() -> None:
    screen = Screen().open("/steps?model=recall-mamba&layer=1&head=1&query=14&key=11")
    assert not screen.alerts and not screen.app.exception
    trace = load("recall-mamba").trace(str(screen.picker("Sentence").value))
    weight = float(trace.weights(1, 1, stream="mixer")[14, 11])
    header, arrays, _ = pipeline(screen)
    assert header["mixer"]["convolved"] == 2 and arrays["weights"][14, 11] == pytest.approx(weight, rel=1e-5)
    tensors = safetensors.torch.load(screen.download("Tensors (safetensors)"))
    assert float(tensors["weights"][14, 11]) == pytest.approx(weight, rel=1e-5)
    torch.testing.assert_close(tensors["weights"] @ tensors["value"], tensors["output"], atol=1e-4, rtol=1e-4)
    assert "arrives at" in "".join(text for text, _ in screen.slides[-2]["ask"])


def test_the_pipeline_is_pressed_as_that_of_a_softmax_is(stay: OpenPage, idle: Callable[[Page], None]) -> None:
    page = stay("/steps?model=recall&stream=mixer&layer=0&head=0&query=11&key=5", height=860)
    shown, claim = page.get_by_test_id("pipeline"), page.get_by_test_id("pipeline-claim")
    trace = load("recall").trace("anna red , ben blue , emma green , ben orange . ben ?")
    row = trace.weights(0, 0, "mixer")[11]
    expect(claim).to_have_text(re.compile(f"^orange has {abs(float(row[5])):.2f} of blue taken away", re.I))
    numbers = shown.locator(".av-flowchart text.av-weighed").all_text_contents()
    assert numbers == [*(weight_text(float(one)) for one in row[:12]), "0", "0", "0"]
    # Bars left of 0 for minus, and right of it for plus.
    bars = shown.locator("rect.av-share").evaluate_all(
        "bars => bars.map(one => [one.matches('.av-less'), ...['x', 'width'].map(name => +one.getAttribute(name))])"
    )
    assert [less for less, *_ in bars] == [float(one) < 0 for one in row[:12]]
    zeros = [x + width if less else x for less, x, width in bars]
    assert max(zeros) - min(zeros) < 1
    expect(shown.get_by_text("Next word")).to_be_visible(timeout=60_000)
    titles = shown.locator(".av-title").all_text_contents()
    assert {"Read", "Decayed", "Erased", "Written", "All heads", "The rest"} <= set(titles)
    shown.get_by_role("button", name=re.compile("^key green")).click()
    expect(claim).to_have_text(re.compile(f"^green carries {float(row[8]):.2f} to orange", re.I))
    idle(page)
    assert "key=8" in page.url
    shown.get_by_role("button", name=re.compile("^query ben")).last.click()
    expect(claim).to_have_text(re.compile("ben"))
    idle(page)
    assert "query=13" in page.url
    shown.get_by_role("button", name="Erased: the whole matrix").click()
    expect(page.get_by_test_id("arithmetic")).to_be_visible(timeout=60_000)


def test_a_link_to_a_hybrids_mixer_opens_it_before_the_model_is_loaded() -> None:
    facts = CATALOGUE["recall"].facts, CATALOGUE["recall-mamba"].facts
    assert facts == (load("recall").facts, load("recall-mamba").facts)
