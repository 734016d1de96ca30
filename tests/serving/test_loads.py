"""Loads of models: one for all who wait, none in another's way, and none that nobody waits for."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from attention_viz.errors import LoadCancelled
from attention_viz.serving import jobs
from attention_viz.serving.jobs import Loads


class Leaving(BaseException):
    """As Streamlit stops the run of a visitor who leaves."""


def test_a_load_of_one_model_does_not_wait_for_another_s() -> None:
    hold = threading.Event()

    def load(name: str, _abandoned: Callable[[], bool]) -> str:
        if name == "large":
            hold.wait(20)
        return name

    under_way: Loads[str] = Loads(load)
    with ThreadPoolExecutor(1) as pool:
        large = pool.submit(under_way.wait, "large")
        assert under_way.wait("small") == "small"
        assert not large.done()
        hold.set()
        assert large.result(20) == "large"


def test_a_load_goes_on_while_one_waits_and_is_given_up_when_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GRACE", 0.3)
    begun, given_up = threading.Event(), threading.Event()

    def load(name: str, abandoned: Callable[[], bool]) -> str:
        begun.set()
        while not abandoned():
            time.sleep(0.01)
        given_up.set()
        raise LoadCancelled(name)

    under_way: Loads[str] = Loads(load)
    gone = [threading.Event(), threading.Event()]

    def leave(number: int) -> None:
        if gone[number].is_set():
            raise Leaving

    with ThreadPoolExecutor(2) as pool:
        visitors = [pool.submit(under_way.wait, "a", lambda number=number: leave(number)) for number in range(2)]
        assert begun.wait(10)
        gone[0].set()
        assert isinstance(visitors[0].exception(10), Leaving)
        assert not given_up.wait(1)
        gone[1].set()
        assert isinstance(visitors[1].exception(10), Leaving)
        assert given_up.wait(10)


def test_whoever_comes_while_a_load_is_given_up_gets_a_new_one() -> None:
    tries = list[str]()

    def load(name: str, _abandoned: Callable[[], bool]) -> str:
        tries.append(name)
        if len(tries) == 1:
            raise LoadCancelled(name)
        return name

    assert Loads(load).wait("a") == "a"
    assert tries == ["a", "a"]


def test_an_error_of_a_load_reaches_whoever_waits_even_where_it_is_a_timeout() -> None:
    def load(name: str, _abandoned: Callable[[], bool]) -> str:
        raise TimeoutError(name)

    with pytest.raises(TimeoutError, match="a"):
        Loads(load).wait("a")
