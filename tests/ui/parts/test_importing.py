"""Bodies of pages are imported by one thread at a time, and a place that waits says so."""

import threading
import time

import pytest
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui.runner import runner as module
from attention_viz.ui.runner.runner import importing
from tests.ui.screens import PAGES, Screen


def test_one_thread_at_a_time_imports_and_only_the_first_visitors_are_told_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, inside, most = list[str](), list[int](), list[int]()
    monkeypatch.setattr(module, "hold", lambda *_: held.append("held"))
    monkeypatch.setattr(module, "READY", set[str]())
    place = DeltaGenerator()

    def visit() -> None:
        with importing("explore", None, place, 600):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    visitors = [threading.Thread(target=visit) for _ in range(6)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert most == [1] * 6
    before = len(held)
    visit()
    assert before >= 1 and len(held) == before, "the body is there by now"


@pytest.mark.parametrize("address", PAGES)
def test_a_page_that_is_imported_while_its_run_is_at_hand_ends_with_nothing_held(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen()
    screen.open(address).open("/")
    monkeypatch.setattr(module, "READY", set[str]())
    screen.open(address)
    assert not screen.app.get("skeleton")
