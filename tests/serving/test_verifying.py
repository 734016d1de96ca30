"""A comparison goes on by itself: whoever waits for it may leave, and whoever comes finds it made or going on."""

import threading

import pytest
import torch

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.serving.runs import Run
from attention_viz.serving.verifying import verify
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from attention_viz.trace.trace_data import attach


class Leaving(BaseException):
    """As Streamlit stops a run."""


class Measuring:
    """A comparison that ends when it is let go, and counts how often it was made."""

    def __init__(self) -> None:
        self.go, self.begun, self.times = threading.Event(), threading.Event(), 0

    def __call__(self) -> Fidelity:
        self.times += 1
        self.begun.set()
        assert self.go.wait(20)
        return Fidelity(0.0, 0.0, 1e-5, "nothing")


def drawn_with(measure: object) -> Run:
    call, axis = av.attend(torch.ones(1, 2, 3), torch.ones(1, 2, 3), torch.ones(1, 2, 3)), Tokens.of_ids((1, 2))
    trace = Trace(
        {"encoder": (Layer(call, "0"),)}, {"encoder": axis}, {"encoder": axis}, torch.zeros(1, 2), Provenance("made")
    )
    return Run(attach(trace, Rerun(measure)))  # pyright: ignore[reportArgumentType]


def test_whoever_leaves_needs_not_wait_and_whoever_comes_back_finds_the_same_going_on() -> None:
    measuring = Measuring()
    run = drawn_with(measuring)

    def leave() -> None:
        assert measuring.begun.wait(20)
        raise Leaving

    for _ in range(2):
        with pytest.raises(Leaving):
            verify(run, leave)
    measuring.go.set()
    verify(run)
    assert measuring.times == 1 and run.trace.fidelity.ok


def test_what_goes_wrong_is_raised_to_whoever_asked() -> None:
    def fail() -> Fidelity:
        raise TraceError("the model has changed")

    run = drawn_with(fail)
    for _ in range(2):
        with pytest.raises(TraceError, match="has changed"):
            verify(run)
