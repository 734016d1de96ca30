"""Which choice counts: the reader's or the program's, whichever is newer; and bytes that are freed with their trace."""

import gc
import weakref
from collections.abc import Mapping
from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.streamlit import mounting
from attention_viz.streamlit.mounting import follow, name_of
from attention_viz.streamlit.packing import packed


def made(seed: int = 1, heads: int = 3) -> av.Trace:
    q, k, v = torch.randn(3, 1, heads, 4, 3, generator=torch.Generator().manual_seed(seed))
    return av.Trace.from_qkv(q, k, v, layout="bhsd")


class Visit:
    """One visitor of an app with one component."""

    def __init__(self, trace: av.Trace) -> None:
        self.trace = trace

    def run(self, message: Mapping[str, Any] | None = None, wanted: Any = None) -> int:
        shown, _ = follow("x", self.trace, packed(self.trace).id, message, wanted, packed(self.trace).opening)
        return shown.head


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Visit:
    monkeypatch.setattr(mounting.st, "session_state", {})
    return Visit(made())


def choice(head: int, serial: int) -> dict[str, Any]:
    return {"head": head, "query": None, "key": None, "serial": serial}


def test_the_program_counts_when_it_changes_and_the_reader_afterwards(visit: Visit) -> None:
    assert visit.run(wanted={"head": 2}) == 2
    assert visit.run(choice(1, 1), {"head": 2}) == 1
    assert visit.run(choice(1, 1), {"head": 0}) == 0
    assert visit.run(choice(1, 1), {"head": 0}) == 0
    assert visit.run(choice(2, 2), {"head": 0}) == 2


def test_the_same_from_the_program_counts_again_once_it_was_something_else(visit: Visit) -> None:
    assert visit.run(wanted={"head": 2}) == 2
    assert visit.run(choice(1, 1)) == 1
    assert visit.run(choice(1, 1), {"head": 2}) == 2


def test_a_mapping_that_the_program_changes_in_place_counts(visit: Visit) -> None:
    wanted = {"head": 2}
    assert visit.run(wanted=wanted) == 2
    wanted["head"] = 1
    assert visit.run(wanted=wanted) == 1


def test_a_choice_made_in_another_trace_is_left_aside(visit: Visit) -> None:
    visit.run()
    assert visit.run(choice(2, 1)) == 2
    visit.trace = made(seed=2, heads=2)
    opening = packed(visit.trace).opening().head
    assert visit.run(choice(2, 1)) == opening
    assert visit.run(choice(0, 2)) == 0


def test_an_equal_trace_made_again_is_the_same(visit: Visit) -> None:
    visit.run(wanted={"head": 1, "query": 3, "key": 2})
    visit.trace = made()
    shown, _ = follow("x", visit.trace, packed(visit.trace).id, None, None, packed(visit.trace).opening)
    assert (shown.head, shown.query, shown.key) == (1, 3, 2)


def test_keys_that_are_one_class_name_stay_apart() -> None:
    assert name_of("left-1") == "left-1"
    assert len({name_of(key) for key in ("a b", "a.b", "a-b", "ä b")}) == 4


def test_bytes_are_freed_with_their_trace_and_never_shown_for_another() -> None:
    trace = made()
    held, gone = packed(trace), weakref.ref(trace)
    assert len(held.payload) > 100
    assert packed(trace) is held
    assert len(held.pair(av.Selection(trace.streams[0], 0, 0))) == 2
    del trace
    gc.collect()
    assert gone() is None
    assert packed(made()) is not held


def test_a_ranking_is_of_this_text_alone() -> None:
    trace = made()
    of = packed(trace)
    assert of.ranking({"of": "another", "stream": "x", "query": 0, "key": 0}) is None
    assert of.head(av.Selection(trace.streams[0], 0, 0)) is None
