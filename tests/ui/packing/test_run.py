"""A run's bytes for the explorer: packed once for everybody, and let go with the run."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import attention_viz as av
from attention_viz import explorer
from attention_viz.serving.runs import Run
from attention_viz.ui import packing
from attention_viz.ui.packing import long_id_of, payload_of


def test_packing_one_trace_for_the_browser_keeps_nobody_else_s_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = (Run(av.scratch(text)) for text in ("a slow one", "a quick one"))
    begun, go, pack = threading.Event(), threading.Event(), explorer.pack

    def pack_slowly(trace: av.Trace, **rest: Any) -> bytes:
        if trace is slow.trace:
            begun.set()
            go.wait(20)
        return pack(trace, **rest)

    monkeypatch.setattr(explorer, "pack", pack_slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: payload_of(slow))
        assert begun.wait(10)
        second = pool.submit(lambda: payload_of(quick))
        try:
            assert second.result(5)
        finally:
            go.set()
        assert first.result(20)


def test_a_run_is_packed_once_for_all_who_ask_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    run, go, packed, pack = Run(av.scratch("the same one")), threading.Event(), list[av.Trace](), explorer.pack

    def pack_slowly(trace: av.Trace, **rest: Any) -> bytes:
        packed.append(trace)
        go.wait(20)
        return pack(trace, **rest)

    monkeypatch.setattr(explorer, "pack", pack_slowly)
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(payload_of, run) for _ in range(4)]
        go.set()
        found = [one.result(20) for one in asking]
    assert packed == [run.trace]
    assert all(one is found[0] for one in found)
    assert found[0] == pack(run.trace)


def test_a_packed_run_is_let_go_with_its_bytes() -> None:
    run = Run(av.scratch("let go"))
    assert payload_of(run) and long_id_of(run) is None
    gone, bytes_gone = weakref.ref(run), weakref.ref(packing._packed(run))
    del run
    gc.collect()
    assert gone() is None and bytes_gone() is None
