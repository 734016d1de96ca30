"""A long text's heads, which the browser gets one at a time; those beside the one on the screen are packed ahead."""

import gc
import itertools
import threading
import time
import weakref
from types import SimpleNamespace

import pytest

from attention_viz import explorer
from attention_viz.explorer import payload
from attention_viz.explorer.packet import read_packet
from attention_viz.serving import runs
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import ANALYSES
from attention_viz.serving.run import Request
from attention_viz.serving.runs import Run, run_request
from attention_viz.serving.settings import Settings
from attention_viz.trace.trace import Trace
from attention_viz.ui import packing as heads
from attention_viz.ui.packing import head_of, long_id_of, ranking_of

TEXT = "rain falls on the old stone bridge while the river runs below it " * 3


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SETTINGS", Settings(longest_text=24, longest_study=9))
    monkeypatch.setattr(runs, "TRACES", SharedCache(10**9, lambda run: run.trace.nbytes))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(payload, "LONG", 100)
    return run_request(Request(model="induction", text=TEXT), longest=24)


def test_of_a_long_text_a_head_is_handed_over_by_itself_and_made_once(run: Run) -> None:
    packed = head_of(run, "decoder", 1, 0)
    assert packed is not None and packed is head_of(run, "decoder", 1, 0)
    header = read_packet(packed)[0]
    assert (header["of"], header["layer"], header["head"]) == (long_id_of(run), 1, 0)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """One more each time that is looked whether anybody computes; heads that were made before are forgotten."""
    looked = threading.Semaphore(0)

    def sleep(_seconds: float) -> None:
        looked.release()
        time.sleep(0.001)

    monkeypatch.setattr(heads, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    monkeypatch.setattr(heads, "REST", 0.01)
    monkeypatch.setattr(heads, "HEADS", SharedCache(10**8, len))
    monkeypatch.setattr(heads, "AHEAD", heads.HeadsAhead())
    return looked


def test_heads_of_the_layer_that_is_looked_at_are_made_ahead_while_nobody_computes(
    run: Run, looks: threading.Semaphore
) -> None:
    with ANALYSES:
        head_of(run, "decoder", 1, 0)
        for _ in range(50):  # it goes on looking, and makes nothing meanwhile
            assert looks.acquire(timeout=60)
        assert made(run) == {(1, 0)}
    until = time.monotonic() + 60
    while made(run) != {(1, 0), (1, 1)}:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_text_that_nobody_looks_at_any_more_is_let_go_and_nothing_made_of_it(
    run: Run, looks: threading.Semaphore
) -> None:
    another = Run(run.trace.only("decoder"))
    with ANALYSES:
        head_of(another, "decoder", 1, 0)
        assert looks.acquire(timeout=60)
        gone = weakref.ref(another)
        del another
        gc.collect()
        assert gone() is None
    for thread in threading.enumerate():
        if thread.name == "heads ahead":
            thread.join(60)
    assert made(run) == {(1, 0)}


def test_after_a_head_that_fails_in_an_unforeseen_way_others_are_made_ahead_again(
    run: Run, looks: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack, heard = explorer.pack_head, threading.Event()

    def fail(trace: Trace, stream: str, layer: int, head: int, long_id: str) -> bytes:
        if (layer, head) == (1, 1):
            raise MemoryError
        return pack(trace, stream, layer, head, long_id)

    monkeypatch.setattr(explorer, "pack_head", fail)
    monkeypatch.setattr(threading, "excepthook", lambda _: heard.set())
    head_of(run, "decoder", 1, 0)
    assert heard.wait(60)
    head_of(run, "decoder", 0, 0)
    until = time.monotonic() + 60
    while (0, 1) not in made(run):
        assert time.monotonic() < until
        time.sleep(0.01)


def made(run: Run) -> set[tuple[int, int]]:
    """The heads that are there to be handed over, by layer and head."""
    assert long_id_of(run) is not None
    places = itertools.product((0, 1), repeat=2)
    return {place for place in places if (long_id_of(run), "decoder", *place) in heads.HEADS}


def test_of_a_short_text_nothing_is_handed_over() -> None:
    run = run_request(Request(model="induction", text="rain falls"))
    assert long_id_of(run) is None
    assert head_of(run, "decoder", 0, 0) is None


def test_all_heads_are_ranked_for_a_pair_that_the_browser_asks_about(run: Run) -> None:
    asked = {"of": long_id_of(run), "stream": "decoder", "query": 20, "key": 7}
    found = ranking_of(run, asked)
    assert found is not None
    weights = sorted(
        (float(run.trace.weights(layer, head)[20, 7]), layer, head)
        for layer in run.trace.layer_numbers()
        for head in range(run.trace.head_count(layer))
    )[::-1][:10]
    assert [(one["layer"], one["head"]) for one in found["ranked"]] == [(layer, head) for _, layer, head in weights]
    assert found["ranked"][0]["weight"] == pytest.approx(weights[0][0], abs=1e-6)


def test_no_head_is_ranked_by_a_blocked_cell_or_for_another_text(run: Run) -> None:
    asked = {"of": long_id_of(run), "stream": "decoder", "query": 7, "key": 20}
    found = ranking_of(run, asked)
    assert found is not None and found["ranked"] == []
    assert ranking_of(run, {**asked, "of": "another"}) is None
    assert ranking_of(run, None) is None
