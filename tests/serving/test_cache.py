"""What a room shares: made once however many ask, and never more than there is room for."""

import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz.serving import models as sources
from attention_viz.serving import permissions as allowed
from attention_viz.serving import runs as serving
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request
from attention_viz.serving.settings import Settings
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

TEXT = "the bank of the river"


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models in an allowed folder, and a server with room for one of them."""
    for name in ("one", "two"):
        build("bert with a head").save_pretrained(tmp_path / name)
        word_tokenizer().save_pretrained(tmp_path / name)
    settings = Settings(models=(tmp_path,))
    for module in (allowed, sources):
        monkeypatch.setattr(module, "SETTINGS", settings)
    monkeypatch.setattr(serving, "MODELS", SharedCache(100_000, lambda model: model.nbytes, serving._forget))
    return tmp_path


def test_the_one_unused_for_longest_goes_first() -> None:
    gone = list[str]()
    kept: SharedCache[str, str] = SharedCache(10, len, gone.append)
    for thing in ("aaaa", "bbbb"):
        kept.get(thing, lambda thing=thing: thing)
    kept.get("aaaa", pytest.fail)
    kept.get("cc", lambda: "cc")
    assert gone == []
    kept.get("ddd", lambda: "ddd")
    assert gone == ["bbbb"]
    kept.get("e" * 99, lambda: "e" * 99)  # larger than the room: it is used now, and stays alone
    assert gone == ["bbbb", "aaaa", "cc", "ddd"]
    assert "e" * 99 in kept


def test_room_is_made_before_something_large_is() -> None:
    kept: SharedCache[str, str] = SharedCache(10, len)
    for thing in ("aaaa", "bbbb"):
        kept.get(thing, lambda thing=thing: thing)
    kept.make_room(5)
    assert ("aaaa" in kept, "bbbb" in kept) == (False, True)
    kept.discard(lambda key: key == "bbbb")
    assert "bbbb" not in kept


def test_what_is_dropped_while_it_is_made_is_not_kept() -> None:
    kept: SharedCache[str, int] = SharedCache(10, lambda _: 1)

    def old() -> int:
        kept.discard(lambda key: key == "a")
        assert kept.get("a", lambda: 2) == 2  # who asks from then on doesn't wait for the old one
        return 1

    assert kept.get("a", old) == 1
    assert kept.get("a", pytest.fail) == 2


@pytest.mark.parametrize("change", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_folder_whose_files_changed_is_read_anew(rooms: Path, change: str) -> None:
    request, file = Request(model=str(rooms / "one"), text=TEXT), rooms / "one" / change
    before, kept = serving.run_request(request), SharedCache[tuple[Request, str], int](10, lambda _: 1)
    kept.get((request, "more"), lambda: 1)
    sources.refresh(request.model)
    assert serving.run_request(request) is before
    # The same bytes under a new time, or, of the template, a file that wasn't there.
    file.write_bytes(file.read_bytes() if file.exists() else b"{{ messages[0].content }}")
    sources.refresh(request.model)
    assert not serving.is_loaded(request.model) and (request, "more") not in kept
    assert serving.run_request(request) is not before
    sources.refresh(request.model)
    assert serving.is_loaded(request.model)


def test_what_goes_wrong_is_told_to_all_who_wait_and_tried_again_by_the_next() -> None:
    kept: SharedCache[str, int] = SharedCache(10, lambda _: 1)
    tries = list[int]()

    def fail() -> int:
        tries.append(1)
        time.sleep(0.3)
        raise av.ModelNotFound("gone")

    with ThreadPoolExecutor(8) as pool:
        problems = [future.exception() for future in [pool.submit(kept.get, "a", fail) for _ in range(8)]]
    assert [str(problem) for problem in problems] == ["gone"] * 8
    assert len(tries) == 1
    assert kept.get("a", lambda: 3) == 3


def test_thirty_who_ask_for_one_model_load_it_once(rooms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()

    def open_slowly(source: sources.ModelFiles, cancelled: Callable[[], bool]) -> object:
        opened.append(source.name)
        time.sleep(0.5)
        return sources.open_source(source, cancelled)

    monkeypatch.setattr(serving, "open_source", open_slowly)
    start = threading.Barrier(30)

    def ask() -> serving.Run:
        start.wait(30)
        return serving.run_request(Request(model=str(rooms / "one"), text=TEXT))

    with ThreadPoolExecutor(30) as pool:
        run = [future.result(120) for future in [pool.submit(ask) for _ in range(30)]]
    assert opened == ["one"]
    assert len({id(one) for one in run}) == 1
    assert run[0].trace.fidelity.ok
    assert run[0].trace.provenance.model == "one"


def test_a_model_that_had_to_go_leaves_nothing_in_memory(rooms: Path) -> None:
    first, second = (Request(model=str(rooms / name), text=TEXT) for name in ("one", "two"))
    serving.run_request(first)
    model = weakref.ref(serving._chosen(first).hf_model)
    assert model() is not None
    serving.run_request(second)
    gc.collect()
    assert (serving.is_loaded(first.model), serving.is_loaded(second.model)) == (False, True)
    assert model() is None
    assert serving.run_request(first).trace.fidelity.ok  # it comes back when somebody asks


def test_a_model_larger_than_the_room_is_refused_before_it_is_loaded(
    rooms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SETTINGS", Settings(models=(rooms,), model_memory=0))
    monkeypatch.setattr(serving, "open_source", pytest.fail)
    with pytest.raises(av.UnsupportedModel, match="one needs 0 MB of memory; at most 0 MB are allowed here"):
        serving.load_model(str(rooms / "one"))


def test_those_who_wait_are_released_when_the_size_can_not_be_told() -> None:
    def fail(_: int) -> int:
        raise ValueError("no size")

    cache: SharedCache[str, int] = SharedCache(10, fail)
    assert waiting_get(cache) == (ValueError, 3)
    assert "a" not in cache


def test_those_who_wait_are_released_when_what_is_told_of_an_eviction_fails() -> None:
    def fail(_: str) -> None:
        raise ValueError("not told")

    cache: SharedCache[str, int] = SharedCache(10, lambda _: 10, fail)
    cache.get("b", lambda: 1)
    assert waiting_get(cache) == (ValueError, 3)
    assert cache.get("a", pytest.fail) == 3


def waiting_get(cache: SharedCache[str, int]) -> tuple[type[BaseException], int]:
    """What happens to whoever makes a value, and what another gets who waits for it."""
    begun, go = threading.Event(), threading.Event()

    def make() -> int:
        begun.set()
        go.wait(10)
        return 3

    def ask(make: Callable[[], int], outcome: list[Any]) -> threading.Thread:
        def run() -> None:
            try:
                outcome.append(cache.get("a", make))
            except BaseException as error:
                outcome.append(type(error))

        thread = threading.Thread(target=run, daemon=True)  # one that waits for ever mustn't keep the tests
        thread.start()
        return thread

    outcomes: tuple[list[Any], list[Any]] = ([], [])
    first = ask(make, outcomes[0])
    begun.wait(10)
    second = ask(lambda: 4, outcomes[1])
    time.sleep(0.1)
    go.set()
    for thread in (first, second):
        thread.join(10)
    assert all(outcomes), "somebody still waits"
    return outcomes[0][0], outcomes[1][0]


class Leaving(BaseException):
    """As Streamlit stops the run of a visitor who leaves."""


def test_a_visitor_who_leaves_while_a_value_is_made_takes_nobody_along() -> None:
    cache: SharedCache[str, int] = SharedCache(10, lambda _: 1)
    begun, go = threading.Event(), threading.Event()

    def leave() -> int:
        begun.set()
        go.wait(10)
        raise Leaving

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(cache.get, "a", leave)
        begun.wait(10)
        others = [pool.submit(cache.get, "a", lambda: 4) for _ in range(2)]
        time.sleep(0.1)
        go.set()
        assert [other.result(10) for other in others] == [4, 4]
        assert isinstance(first.exception(10), Leaving)


def test_traces_are_limited_by_their_bytes_and_not_by_their_number(
    rooms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [Request(str(rooms / "one"), "the bank" + " river" * count) for count in range(4)]
    sizes = [serving.run_request(request).trace.nbytes for request in requests]
    assert sizes == sorted(sizes) and sizes[0] > 0
    traces: SharedCache[object, serving.Run] = SharedCache(sizes[2] + sizes[3], lambda run: run.trace.nbytes)
    monkeypatch.setattr(serving, "TRACES", traces)
    run = [serving.run_request(request) for request in requests]
    assert traces.nbytes == sizes[2] + sizes[3]
    assert [serving.run_request(request) is one for request, one in zip(requests[2:], run[2:], strict=True)] == [
        True,
        True,
    ]
    assert serving.run_request(requests[0]) is not run[0]
