"""A trace from a file in place of a model's run: the boxes say what ran, and come back when it is closed."""

from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.serving.runs import Drawn
from attention_viz.trace.tensors import to_safetensors
from attention_viz.ui.parts import open_trace
from attention_viz.ui.parts.exports import trace_bytes

TYPED = {"text": "What was typed", "second": "a second", "target": "", "layer": 1, "head": 2, "stream": None}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a visitor's session holds."""
    held: dict[str, Any] = dict(TYPED)
    monkeypatch.setattr(open_trace.st, "session_state", held)
    return held


def test_an_opened_trace_fills_the_boxes_and_closing_it_puts_back_what_was_typed(session: dict[str, Any]) -> None:
    open_trace._show(Drawn(av.scratch("Another sentence ran")))
    assert (session["text"], session["second"]) == ("Another sentence ran", "")
    open_trace._show(Drawn(av.scratch("And a third")))
    assert session["text"] == "And a third"
    open_trace.close()
    assert {name: session[name] for name in TYPED} == TYPED


def test_what_is_typed_over_an_opened_trace_stays(session: dict[str, Any]) -> None:
    open_trace._show(Drawn(av.scratch("Another sentence ran")))
    session["text"] = "Typed over it"
    open_trace.close()
    assert (session["text"], session["second"], session["layer"]) == ("Typed over it", "a second", 1)


def test_a_run_that_was_taken_away_opens_again(tmp_path: Path) -> None:
    trace = av.scratch("The bank of the river")
    (tmp_path / "run").write_bytes(trace_bytes(trace))
    found = av.Trace.load(tmp_path / "run")
    assert found.provenance.text == "The bank of the river"
    assert (found.weights(0, 1) == trace.weights(0, 1)).all()


def test_the_tensors_of_one_head_are_refused_in_words_that_say_what_to_take(tmp_path: Path) -> None:
    (tmp_path / "tensors").write_bytes(to_safetensors(av.scratch("The bank"), 0, 0))
    with pytest.raises(TraceError, match=r"the numbers of one head, as “Tensors .*whole trace, as “Trace \(safetens"):
        av.Trace.load(tmp_path / "tensors")
