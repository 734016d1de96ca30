"""Ray's actors give the files that threads of this process give; without Ray the engine is refused by name."""

import importlib.util
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.corpus.chunks import CHUNK
from tests.corpus.test_scan import StoppedError, files_of, stop_after
from tests.corpus.texts import by_lot
from tests.shipped import shipped

INSTALLED = importlib.util.find_spec("ray") is not None


@pytest.mark.skipif(INSTALLED, reason="Ray is installed")
def test_without_ray_the_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(av.UnsupportedModel, match=r"Ray isn't installed; pip install “attention-viz\[ray\]” brings it"):
        av.scan(shipped("induction"), by_lot(3), tmp_path, engine="ray")


@pytest.mark.skipif(not INSTALLED, reason="needs Ray, the extra attention-viz[ray]")
@pytest.mark.filterwarnings("default")  # Ray's own
def test_ray_gives_the_same_bits_and_goes_on_where_threads_stopped(tmp_path: Path) -> None:
    texts = by_lot(4 * CHUNK + 5)
    av.scan(shipped("induction"), texts, tmp_path / "local")
    with pytest.raises(StoppedError):
        av.scan(shipped("induction"), texts, tmp_path / "ray", progress=stop_after(CHUNK))
    av.scan(shipped("induction"), texts, tmp_path / "ray", engine="ray", workers=2)
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")
