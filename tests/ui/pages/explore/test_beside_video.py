"""A video that a visitor brings: read with the text, shown as a filmstrip, refused by name where it can't be read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import attention_viz as av
from attention_viz.serving.models import remember
from attention_viz.serving.runs import MODELS, TRACES
from tests.inputs.media.test_video import written
from tests.models.video_families import FRAMES, wrapped
from tests.ui.screens import Screen

NAME, TEXT = "shapes", "what is this ?"
OPENED = f"/?model={NAME}&text=what+is+this+?&layer=0&head=0&stream=decoder"


def forget() -> None:
    MODELS.discard(lambda key: key == NAME)
    TRACES.discard(lambda key: key[0].model == NAME)


@pytest.fixture
def reader() -> Iterator[av.AttentionModel]:
    """A model that reads videos, in the place of one in the catalogue."""
    forget()
    model = MODELS.get(NAME, lambda: wrapped("qwen2_vl"))
    assert isinstance(model, av.AttentionModel)
    remember(NAME, model.facts)
    yield model
    forget()
    remember(NAME, av.CATALOGUE[NAME].facts)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frames = np.repeat(np.arange(4, dtype=np.uint8) * 40, 32 * 64 * 3).reshape(4, 32, 64, 3)
    return written(tmp_path_factory.mktemp("film") / "mine.mp4", frames, "libx264", rate=2)


def test_a_video_runs_with_the_text_and_its_frames_have_their_times(reader: av.AttentionModel, film: Path) -> None:
    screen = Screen().open(OPENED).upload("Upload video", film)
    assert not screen.alerts and "picture" not in screen.address and "mine.mp4" in screen.words
    trace = reader.trace(TEXT, video=av.Video(film))
    packed = screen.packed()
    panels = packed["seen"]["picture"]["sheet"]["panels"]
    assert [one["name"] for one in panels] == [f"{time:.2f} s" for time in trace.seen.times[::2]]
    assert np.abs(screen.weights() - trace.weights(0, 0, "decoder").numpy()).max() < 1e-6
    still = reader.trace(TEXT, picture=av.Picture(FRAMES[0]))
    assert screen.weights().shape != tuple(still.weights(0, 0, "decoder").shape)
    screen.press("Sample – a blue cross")
    assert screen.address["picture"] == "shapes-one" and "sheet" not in screen.packed()["seen"]["picture"]


@pytest.mark.usefixtures("reader")
def test_a_broken_video_is_refused_and_what_was_shown_stays(tmp_path: Path) -> None:
    path = tmp_path / "theirs.mp4"
    path.write_bytes(b"no video")
    screen = Screen().open(OPENED).upload("Upload video", path)
    (alert,) = screen.alerts
    assert "video" in alert.lower() and ("broken" in alert or "can't" in alert or "no video" in alert), alert
    assert screen.address["picture"] == "shapes-two"


def test_a_model_whose_processor_reads_no_video_says_why(reader: av.AttentionModel) -> None:
    remember(NAME, replace(reader.facts, why_no_video="the processor prepares no video"))
    screen = Screen().open(OPENED)
    assert "The processor prepares no video" in screen.words
    # A model of images alone offers none and needs no reason.
    remember(NAME, replace(reader.facts, why_no_video=None))
    assert "prepares no video" not in Screen().open(OPENED).words


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("page", ["steps", "masks", "heads", "compare"])
def test_other_pages_read_the_video_too(page: str, film: Path) -> None:
    screen = Screen().open(OPENED.replace("/?", f"/{page}?")).upload("Upload video", film)
    assert not screen.alerts and "mine.mp4" in screen.words
