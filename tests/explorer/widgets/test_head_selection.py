"""A selection is what the trace has: a program's mistakes are named, a browser's are left aside."""

from typing import Any

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.explorer.widgets.head_selection import heard, merged, moved_to


@pytest.fixture(scope="module")
def trace() -> av.Trace:
    q, k, v = torch.randn(3, 1, 2, 4, 3, generator=torch.Generator().manual_seed(1))
    return av.Trace.from_qkv(q, k, v, layout="bhsd")


@pytest.fixture(scope="module")
def before(trace: av.Trace) -> av.Selection:
    return av.Selection(trace.streams[0], trace.layer_numbers()[0], 1, 2, 1)


def test_missing_names_stay_and_another_head_drops_the_pair(trace: av.Trace, before: av.Selection) -> None:
    assert merged(trace, before, {"query": 3, "key": 0}) == av.Selection(before.stream, 0, 1, 3, 0)
    assert merged(trace, before, {"head": numpy.int64(0)}) == av.Selection(before.stream, 0, 0)
    assert type(merged(trace, before, {"head": numpy.int64(0)}).head) is int
    assert merged(trace, before, before) == before


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"heads": 1}, ValueError, "unknown name 'heads' in a selection; choose stream, layer, head, query, key"),
        ({"head": 2}, av.ShapeError, "has no head 2; choose 0 to 1"),
        ({"layer": 7}, av.TraceError, "no layer 7"),
        ({"stream": "none"}, av.TraceError, "unknown stream 'none'"),
        ({"query": 4, "key": 0}, av.ShapeError, "has no query 4; choose 0 to 3"),
        ({"query": 1, "key": None}, ValueError, "a pair needs both query and key"),
        ({"head": 0.5}, TypeError, "float"),
    ],
)
def test_a_programs_mistake_is_named(
    trace: av.Trace, before: av.Selection, wanted: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        merged(trace, before, wanted)


@pytest.mark.parametrize(
    "message",
    [
        None,
        "x",
        {"head": 9},
        {"head": True},
        {"head": None},
        {"head": -1},
        {"layer": "0"},
        {"stream": 3},
        {"query": 1, "key": None},
        {"query": 1, "key": 400},
    ],
)
def test_what_a_browser_makes_up_is_left_aside(trace: av.Trace, before: av.Selection, message: Any) -> None:
    assert heard(trace, before, message) == before


def test_a_browsers_choice_is_taken(trace: av.Trace, before: av.Selection) -> None:
    chosen = {"stream": before.stream, "layer": 0, "head": 0, "query": None, "key": None, "serial": 3}
    assert heard(trace, before, chosen) == av.Selection(before.stream, 0, 0)


def test_another_trace_keeps_the_head_it_has_and_never_the_pair(trace: av.Trace, before: av.Selection) -> None:
    opening = av.Selection(before.stream, 0, 0)
    assert moved_to(trace, before, lambda: opening) == av.Selection(before.stream, 0, 1)
    assert moved_to(trace, av.Selection("other", 0, 1), lambda: opening) == opening
