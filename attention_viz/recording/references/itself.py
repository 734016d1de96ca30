"""Run a model itself with its own attention: foreign code may know its modules, and a twin's are others."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.runner import Runner
from attention_viz.recording.twin import Twin

__all__ = ["run_itself"]

_T = TypeVar("_T")

# Seconds between tries, about 10 in all: other threads turn a model to our attention for the time of a run.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 3.0)


def run_itself(runner: Runner, twin: Twin, run: Callable[[Twin], _T]) -> _T:
    """Run the model itself, not a twin's copies of its modules."""
    itself = replace(twin, model=runner.model)
    for pause in (*_PAUSES, None):
        with runner.door, torch.no_grad(), runner.switch.own() as turned:
            try:
                found = run(itself)
            except Exception:
                if not turned():
                    raise
            else:
                if not turned():
                    return found
        if pause is not None:
            time.sleep(pause)
    raise UnsupportedModel("it can't be run by itself while other threads record it; needed: a moment without them")
