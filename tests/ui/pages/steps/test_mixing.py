"""The Step by step page of a layer without a softmax: a real hybrid in a folder, its numbers against the library's."""

import html
import re
from pathlib import Path
from urllib.parse import quote

import pytest
import safetensors.torch
import torch

from attention_viz import load
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.sources import CATALOGUE
from attention_viz.views.style.wording import weight_text
from tests.ui.screens import Screen


@pytest.fixture
def address(models: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A hybrid whose layer 0 is a selective scan."""
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(models,)))
    return f"/steps?model={quote(str(models / 'hybrid'), safe='')}&text=abcdefgh&stream=mixer&layer=0&head=3"


def test_a_pair_of_a_mixer_opens_from_the_address(address: str, models: Path) -> None:
    screen = Screen().open(f"{address}&query=5&key=2")
    trace = load_folder(models / "hybrid", "mine").trace("abcdefgh")
    weights = trace.weights(0, 3, stream="mixer")
    page = screen.part("mixer-pipeline")
    assert "Layer 0 · selective scan · channel 3" in screen.part("mixer-claim")
    names = re.findall(r'mixer-name">(.*?)</span>', page)
    assert names == ["Read", "After decay", "Write", "Gate", "Weight", "Still there", "‖weight · value‖", "Output"]
    totals = dict(zip(names, re.findall(r'-ink">(.*?)</b>', html.unescape(page)), strict=True))
    assert totals["Weight"] == weight_text(float(weights[5, 2]))
    assert totals["Output"] == weight_text(float(trace.attention(0, "mixer").head(3).output[5, 0]))
    row = re.findall(r"Σ(?:\|·\|)? = <b>(.*?)</b>", html.unescape(page))
    assert row == [weight_text(float(weights[5].sum())), weight_text(float(weights[5].abs().sum()))]
    # Elements that the page keeps: bars from 0, as long as the row's ends are apart in all.
    found = re.findall(r'<div class="mixer-(plus|minus)" style="left: ([\d.]+)%; width: ([\d.]+)%', page)
    low, high = min(0.0, float(weights[5].min())), max(0.0, float(weights[5].max()))
    starts = [100 * (min(0.0, float(one)) - low) / (high - low) for one in weights[5, :6]]
    assert [side for side, *_ in found] == ["minus" if one < 0 else "plus" for one in weights[5, :6]]
    assert [float(left) for _, left, _ in found] == pytest.approx(starts, abs=0.06)
    sizes = 100 * weights[5, :6].abs() / (high - low)
    assert [float(width) for *_, width in found] == pytest.approx(sizes.tolist(), abs=0.06)


def test_a_step_of_a_mixer_has_its_matrix_and_its_cells(address: str) -> None:
    screen = Screen().open(f"{address}&step=weights&query=5&key=2")
    assert screen.address["stream"] == "mixer" and not screen.alerts
    assert "Rows don't sum to 1" in screen.words
    screen.pick("Step", "kept")
    assert "How much of each token's write is still there" in screen.words and not screen.alerts
    screen.pick("Step", "write").pick("Step", "output")
    assert not screen.alerts


def test_a_model_without_attention_opens_its_mixer_with_keys_to_press_tensors_and_slides() -> None:
    screen = Screen().open("/steps?model=recall-mamba&layer=1&head=1&query=14&key=11")
    assert not screen.alerts and not screen.app.exception
    trace = load("recall-mamba").trace(str(screen.picker("Sentence").value))
    weight = float(trace.weights(1, 1, stream="mixer")[14, 11])
    claim = screen.part("mixer-claim")
    assert "values already mix the last 2 tokens" in claim and weight_text(weight) in claim
    tensors = safetensors.torch.load(screen.download("Tensors (safetensors)"))
    assert float(tensors["weights"][14, 11]) == pytest.approx(weight, rel=1e-5)
    torch.testing.assert_close(tensors["weights"] @ tensors["value"], tensors["output"], atol=1e-4, rtol=1e-4)
    assert "arrives at" in "".join(text for text, _ in screen.slides[-2]["ask"])
    screen.pick("Key token", 14)
    assert screen.address["key"] == "14" and "carried" in screen.part("mixer-claim")


def test_a_link_to_a_hybrids_mixer_opens_it_before_the_model_is_loaded() -> None:
    facts = CATALOGUE["recall"].facts, CATALOGUE["recall-mamba"].facts
    assert facts == (load("recall").facts, load("recall-mamba").facts)
