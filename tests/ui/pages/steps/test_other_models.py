"""What other families' models do beside the usual, as the Step by step page shows it: real models, random weights."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page, expect
from safetensors.torch import load
from torch import Tensor
from torch.testing import assert_close

from tests.conftest import OpenPage
from tests.models.families import ids, wrapped

Idle = Callable[[Page], None]


@pytest.fixture
def opened(page: OpenPage, idle: Idle, tmp_path: Path) -> Callable[[str, str], Page]:
    """Records a model of a family, opens the file on the page, and goes to a step."""

    def open_trace(family: str, step: str) -> Page:
        path = tmp_path / "mine.safetensors"
        wrapped(family).trace_ids(ids(9)).save(path)
        screen = page("/steps?step=scores")
        screen.get_by_role("button", name="Open a trace").click()
        screen.locator("input[type=file]").set_input_files(path)
        idle(screen)
        screen.get_by_role("radio", name=step, exact=True).click()
        idle(screen)
        expect(screen.get_by_text("Not as the model")).to_have_count(0)
        expect(screen.locator(".katex-error")).to_have_count(0)
        return screen

    return open_trace


def tensors(screen: Page) -> dict[str, Tensor]:
    """What is downloaded, proven to multiply up from the scores on."""
    with screen.expect_download() as download:
        screen.get_by_role("button", name="Tensors (safetensors)").click()
    found = load(Path(download.value.path()).read_bytes())
    assert_close(found["query"] @ found["key"].T, found["scores"], atol=1e-5, rtol=1e-5)
    assert_close(found["weights"] @ found["value"], found["output"], atol=1e-5, rtol=1e-5)
    return found


def choose(screen: Page, label: str, option: str, idle: Idle) -> None:
    screen.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    screen.get_by_role("option", name=option, exact=True).click()
    idle(screen)


def total(screen: Page) -> float:
    return float(screen.get_by_test_id("total").inner_text().replace("−", "-").replace("∞", "inf"))


def test_llama_shows_vectors_before_and_after_their_rotation_and_the_angles(
    opened: Callable[[str, str], Page], idle: Idle
) -> None:
    screen = opened("llama", "Rotated")
    found = tensors(screen)
    angle = torch.arange(9)[:, None] * 10_000.0 ** (-torch.arange(4) / 4)
    for name in ("query", "key"):
        before = found[f"unrotated_{name}"]
        first, second = before[:, :4], before[:, 4:]
        turned = [first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()]
        assert_close(torch.cat(turned, -1), found[name], atol=1e-5, rtol=1e-4)
    for title in ("Query", "Rotated query", "Key", "Rotated key", "Angle in radians"):
        expect(screen.locator(".gtitle").get_by_text(title, exact=True)).to_have_count(1)
    choose(screen, "Query token", "3 · 42", idle)
    expect(screen.get_by_text("Dimensions 0 and 4 turn by 3.0000 radians.")).to_be_visible()
    assert total(screen) == pytest.approx(found["query"][3, 0].item(), abs=1e-5)
    terms = [
        float(cell.replace("−", "-"))
        for cell in screen.get_by_test_id("arithmetic").locator("td").all_inner_texts()
        if cell
    ]
    assert terms[0] == pytest.approx(found["unrotated_query"][3, 0].item(), abs=1e-5)
    assert terms[0] * terms[1] + terms[3] * terms[4] == pytest.approx(total(screen), abs=1e-4)


def test_gemma_shows_its_soft_cap_between_scale_and_mask(opened: Callable[[str, str], Page]) -> None:
    screen = opened("gemma2", "Soft-capped")
    found = tensors(screen)
    assert_close(found["scores"] * 0.5, found["scaled"], atol=1e-6, rtol=1e-5)
    assert_close(0.5 * torch.tanh(found["scaled"] / 0.5), found["softcapped"], atol=1e-6, rtol=1e-5)
    allowed = found["masked"] > -torch.inf
    assert_close(found["masked"][allowed], found["softcapped"][allowed])
    assert_close(found["masked"].softmax(-1), found["weights"], atol=1e-6, rtol=1e-5)
    expect(screen.get_by_text("Squashed into ±0.5")).to_be_visible()
    expect(screen.get_by_role("radio", name="Rotated", exact=True)).to_be_visible()


def test_t5_shows_what_it_adds_for_two_positions(opened: Callable[[str, str], Page], idle: Idle) -> None:
    screen = opened("t5 encoder", "Biased")
    found = tensors(screen)
    assert_close(found["scores"], found["scaled"])
    added = found["biased"] - found["scaled"]
    assert added.abs().max() > 0
    # T5 asks only how far apart two positions are: the same is added all along a diagonal.
    assert_close(added[1:, 1:], added[:-1, :-1], atol=1e-5, rtol=0)
    choose(screen, "Key token", "2 · 31", idle)
    assert total(screen) == pytest.approx(found["biased"][0, 2].item(), abs=1e-5)
    assert_close(found["biased"].softmax(-1), found["weights"], atol=1e-6, rtol=1e-5)


def test_gpt_oss_names_the_sink_that_takes_its_share(opened: Callable[[str, str], Page]) -> None:
    screen = opened("gpt_oss", "Weights")
    found, sinks = tensors(screen), wrapped("gpt_oss").trace_ids(ids(9)).attention(0).sinks
    assert sinks is not None
    powers = found["masked"].exp()
    assert_close(powers / (powers.sum(-1, keepdim=True) + sinks[0].exp()), found["weights"], atol=1e-6, rtol=1e-5)
    expect(screen.get_by_text(f"this head's sink: a learned number, {sinks[0].item():.3g}")).to_be_visible()
    expect(screen.get_by_test_id("arithmetic").get_by_text("sink (dropped)")).to_be_visible()
    assert total(screen) == pytest.approx(found["weights"][0, 0].item(), abs=1e-5)
