"""Ray's actors give the files that threads of this process give; without Ray the engine is refused by name."""

import copy
import os
import random
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import attention_viz as av
from attention_viz.corpus.chunks import CHUNK
from attention_viz.corpus.engines import on_ray
from tests.corpus.test_scan import StoppedError, files_of, stop_after
from tests.corpus.texts import by_lot
from tests.shipped import shipped


def test_without_ray_the_engine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ray", "ray.data"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        av.UnsupportedModel, match=r"needs Ray, which isn't installed; run pip install .attention-viz\[ray\]"
    ):
        av.scan(shipped("induction"), by_lot(3), tmp_path, engine="ray")


@pytest.mark.filterwarnings("default")  # Ray's own
def test_ray_gives_the_same_bits_and_goes_on_where_threads_stopped(tmp_path: Path) -> None:
    texts = by_lot(4 * CHUNK + 5)
    av.scan(shipped("induction"), texts, tmp_path / "local")
    with pytest.raises(StoppedError):
        av.scan(shipped("induction"), texts, tmp_path / "ray", progress=stop_after(CHUNK))
    av.scan(shipped("induction"), texts, tmp_path / "ray", engine="ray", workers=2)
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")


def test_a_cluster_that_can_not_be_joined_is_refused_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_options: object) -> None:
        raise ConnectionError("Failed to connect to Ray cluster\nin five tries")

    ray = SimpleNamespace(init=init, exceptions=SimpleNamespace(RayError=ValueError))
    monkeypatch.setenv("RAY_ADDRESS", "far:6379")
    with pytest.raises(av.UnsupportedModel, match=r"at far:6379: Failed .* cluster; .* set RAY_AUTH_MODE=token$"):
        on_ray._begin(ray)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.delenv("RAY_ADDRESS")
    with pytest.raises(av.UnsupportedModel, match=r"can't connect to Ray at this machine: Failed .* cluster$"):
        on_ray._begin(ray)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.filterwarnings("default")  # Ray's own
def test_an_actor_that_has_other_weights_is_told_in_a_sentence(tmp_path: Path) -> None:
    model = copy.copy(shipped("induction"))
    other = replace(model.origin, sha256="0" * 64)
    object.__setattr__(model, "_parts", replace(model._parts, provenance=other))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(av.UnsupportedModel, match=r"^a Ray actor failed: induction has different weights"):
        av.scan(model, by_lot(3), tmp_path, engine="ray", workers=1)


def actors() -> list[int]:
    """The processes of Ray's that work on chunks."""
    found = list[int]()
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said = one.read_bytes()
        except OSError:  # it is gone
            continue
        if said.startswith(b"ray::") and b"_Actor" in said:
            found.append(int(one.parent.name))
    return found


@pytest.mark.filterwarnings("default")  # Ray's own
def test_actors_killed_at_random_moments_change_nothing(tmp_path: Path) -> None:
    texts, chance, kills = by_lot(8 * CHUNK, seed=5), random.Random(22), int(os.environ.get("KILLS", "3"))
    av.scan(shipped("induction"), texts, tmp_path / "local")
    killed, done, over = list[int](), [0], threading.Event()

    def kill() -> None:
        before = 0
        while len(killed) < kills and not over.wait(chance.uniform(0.1, 1)):
            there = actors()
            # After more was done: else on a busy machine each would be hit while it loads, and nothing be done.
            if there and done[0] != before:
                before = done[0]
                killed.append(chance.choice(there))
                os.kill(killed[-1], signal.SIGKILL)

    def told(progress: av.Progress) -> None:
        done[0] = progress.texts

    for number in range(kills):
        if len(killed) == kills:
            break
        over.clear()
        thread = threading.Thread(target=kill)
        thread.start()
        out = tmp_path / f"{number}"
        av.scan(shipped("induction"), texts, out, engine="ray", workers=2, progress=told)
        over.set()
        thread.join()
        assert files_of(out) == files_of(tmp_path / "local")
    assert killed
