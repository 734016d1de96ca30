"""Models whose queries or keys aren't tokens, on every page that shows a head."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from transformers import DetrImageProcessor, PerceiverConfig, PerceiverForMaskedLM, PerceiverTokenizer

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.trace.kind import CROSSING_STREAMS
from attention_viz.trace.trace import Trace
from tests.recording.layout.test_slot_families import detr
from tests.recording.layout.test_slots import sharp
from tests.ui.screens import Screen

TEXT = "the cat sat"
STREAMS = [("detr", "picture"), *((name, "pooling") for name in ("detr", "perceiver"))]
STREAMS += [("detr", "slots"), ("perceiver", "slots"), ("perceiver", "readout")]
PAGES = ("heads", "steps", "compare", "masks", "why")


def perceiver() -> Any:
    torch.manual_seed(0)
    sizes = {"d_model": 24, "d_latents": 32, "num_latents": 6, "qk_channels": 16, "v_channels": 32}
    heads = {"num_self_attention_heads": 4, "num_cross_attention_heads": 4, "num_self_attends_per_block": 2}
    config = PerceiverConfig(vocab_size=262, max_position_embeddings=24, num_blocks=2, **sizes, **heads)
    return sharp(PerceiverForMaskedLM(config))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("slots")
    detr()[0].save_pretrained(place / "detr")
    DetrImageProcessor(size={"height": 32, "width": 32}, do_pad=False).save_pretrained(place / "detr")
    perceiver().save_pretrained(place / "perceiver")
    PerceiverTokenizer(model_max_length=24).save_pretrained(place / "perceiver")
    return place


@pytest.fixture(scope="module")
def traces(folders: Path) -> dict[str, Trace]:
    return {
        "detr": av.load(str(folders / "detr")).trace(av.Picture(SAMPLES["chelsea"].path)),
        "perceiver": av.load(str(folders / "perceiver")).trace(TEXT),
    }


@pytest.fixture
def screen(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(folders,)))
    return Screen()


def address(folders: Path, page: str, name: str, stream: str, **more: str) -> str:
    parts = {"model": str(folders / name), "text": TEXT, "layer": 0, "head": 1, "stream": stream, **more}
    return f"/{page}?{urlencode({**parts, 'picture': 'chelsea'} if name == 'detr' else parts)}"


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_explore_shows_it(name: str, stream: str, folders: Path, screen: Screen, traces: dict[str, Trace]) -> None:
    screen.open(address(folders, "", name, stream))
    assert not screen.alerts
    assert screen.channel("explorer")["stream"] == stream == screen.address["stream"]
    torch.testing.assert_close(
        torch.tensor(screen.weights()).float(), traces[name].weights(0, 1, stream), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_a_page_shows_it_or_says_why_not(page: str, name: str, stream: str, folders: Path, screen: Screen) -> None:
    screen.open(address(folders, page, name, stream))
    why = screen.alerts
    if page == "why":
        assert all(one.startswith("Can't decompose") for one in why)
        return
    assert not why
    if page == "masks":
        locked = screen.channel("masks-board")["locked"]
        assert bool(locked) == (stream in CROSSING_STREAMS) and "two texts" not in locked
