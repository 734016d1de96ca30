"""What other families' models do beside the usual, as the Step by step page shows it: real models, random weights."""

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load
from torch import Tensor
from torch.testing import assert_close

from tests.models.families import ids, wrapped
from tests.models.own_code import OWN, wrapped_own
from tests.ui.screens import Screen

Opened = Callable[[str, str], Screen]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Records a model of a family, opens the file on the page, and goes to a step."""

    def open_trace(family: str, step: str) -> Screen:
        path = tmp_path / "mine.safetensors"
        model = wrapped_own(family) if family in OWN else wrapped(family)
        model.trace_ids(ids(9)).save(path)
        screen = Screen().open("/steps?model=scratch&text=the+cat&step=scores")
        screen.open_trace(path).pick("Step", step).pick("Layer", 0).pick("Head", 0)
        assert "Differs from the model" not in screen.words
        return screen

    return open_trace


def tensors(screen: Screen) -> dict[str, Tensor]:
    """What is downloaded, proven to multiply up from the scores on."""
    found = load(screen.download("Tensors (safetensors)"))
    assert_close(found["query"] @ found["key"].T, found["scores"], atol=1e-5, rtol=1e-5)
    assert_close(found["weights"] @ found["value"], found["output"], atol=1e-5, rtol=1e-5)
    return found


def total(screen: Screen) -> float:
    (found,) = re.findall(r'data-testid="total">(.*?)</b>', "\n".join(screen.written))
    return float(found.replace("−", "-").replace("∞", "inf"))


def test_llama_shows_vectors_before_and_after_their_rotation_and_the_angles(opened: Opened) -> None:
    screen = opened("llama", "rotated")
    found = tensors(screen)
    angle = torch.arange(9)[:, None] * 10_000.0 ** (-torch.arange(4) / 4)
    for name in ("query", "key"):
        before = found[f"unrotated_{name}"]
        first, second = before[:, :4], before[:, 4:]
        turned = [first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()]
        assert_close(torch.cat(turned, -1), found[name], atol=1e-5, rtol=1e-4)
    for title in ("Rotated key", "Query before", "Key before", "Angle in radians, by pair of dimensions"):
        assert f"###### {title}" in screen.words
    assert not screen.all("plotly_chart")
    screen.pick("Query token", 3)
    assert "Dimensions 0 and 4 rotate by 3.0000 radians." in "\n".join(screen.written)
    assert total(screen) == pytest.approx(found["query"][3, 0].item(), abs=1e-5)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", screen.part("arithmetic"))
    terms = [float(html.unescape(cell).replace("−", "-")) for cell in cells if cell]
    assert terms[0] == pytest.approx(found["unrotated_query"][3, 0].item(), abs=1e-5)
    assert terms[0] * terms[1] + terms[3] * terms[4] == pytest.approx(total(screen), abs=1e-4)


def test_gemma_shows_its_soft_cap_between_scale_and_mask(opened: Opened) -> None:
    screen = opened("gemma2", "softcapped")
    found = tensors(screen)
    assert_close(found["scores"] * 0.5, found["scaled"], atol=1e-6, rtol=1e-5)
    assert_close(0.5 * torch.tanh(found["scaled"] / 0.5), found["softcapped"], atol=1e-6, rtol=1e-5)
    allowed = found["masked"] > -torch.inf
    assert_close(found["masked"][allowed], found["softcapped"][allowed])
    assert_close(found["masked"].softmax(-1), found["weights"], atol=1e-6, rtol=1e-5)
    assert "Bounded to ±0.5" in screen.words
    assert "Rotated" in screen.picker("Step").options


def test_t5_shows_what_it_adds_for_two_positions(opened: Opened) -> None:
    screen = opened("t5 encoder", "biased")
    found = tensors(screen)
    assert_close(found["scores"], found["scaled"])
    added = found["biased"] - found["scaled"]
    assert added.abs().max() > 0
    # T5 asks only how far apart two positions are: the same is added all along a diagonal.
    assert_close(added[1:, 1:], added[:-1, :-1], atol=1e-5, rtol=0)
    screen.pick("Query token", 0).pick("Key token", 2)
    assert total(screen) == pytest.approx(found["biased"][0, 2].item(), abs=1e-5)
    assert_close(found["biased"].softmax(-1), found["weights"], atol=1e-6, rtol=1e-5)


def test_deberta_shows_the_two_parts_of_what_it_adds(opened: Opened) -> None:
    screen = opened("deberta-v2, relative", "biased")
    found = tensors(screen)
    parts = [found["bias_content_to_position"], found["bias_position_to_content"]]
    assert_close(found["scaled"] + parts[0] + parts[1], found["biased"], atol=1e-5, rtol=1e-5)
    assert "###### Content to position" in screen.words and "###### Position to content" in screen.words
    screen.pick("Query token", 5).pick("Key token", 2)
    arithmetic = html.unescape(screen.part("arithmetic"))
    assert "content to position" in arithmetic and "position to content" in arithmetic
    assert total(screen) == pytest.approx(found["biased"][5, 2].item(), abs=1e-5)


def test_gpt_oss_names_the_sink_that_takes_its_share(opened: Opened) -> None:
    screen = opened("gpt_oss", "weights")
    found, sinks = tensors(screen), wrapped("gpt_oss").trace_ids(ids(9)).attention(0).sinks
    assert sinks is not None
    powers = found["masked"].exp()
    assert_close(powers / (powers.sum(-1, keepdim=True) + sinks[0].exp()), found["weights"], atol=1e-6, rtol=1e-5)
    assert f"this head's attention sink: a learned number, {sinks[0].item():.3g}" in html.unescape(screen.words)
    assert "sink (dropped)" in screen.part("arithmetic")
    place = [screen.picker(label).value for label in ("Query token", "Key token")]
    assert total(screen) == pytest.approx(found["weights"][*place].item(), abs=1e-5)
