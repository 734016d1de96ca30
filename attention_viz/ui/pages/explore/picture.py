"""The Explore page's explorer, of a run or a recording until then."""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving.recorded import recorded_payload
from attention_viz.serving.runs import Run, has_run, run_request
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading
from attention_viz.ui.packing.run import payload_of
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.explorer import show_explorer
from attention_viz.ui.parts.selection import take_choice
from attention_viz.ui.runner.page import Slots

__all__ = ["show_picture_of", "show_recorded"]


@dataclass
class _Meanwhile:
    tried: bool = False


def show_recorded(state: State, slots: Slots) -> Callable[[], None] | None:
    """Show the labelled recording; return its model run, None if none is needed."""
    if visit.memory(_Meanwhile).tried or opening.opened() is not None or not reading.is_raw(state):
        return None
    payload = None if has_run(state.request) else recorded_payload(state.request)
    if payload is None:
        return None
    with slots["exports"]:
        st.badge("Recorded: shown until the model has run here", color="gray")
    with slots["picture"]:
        show_picture_of(payload, state.stream or next(iter(state.facts.heads)), state)
    return functools.partial(_run_meanwhile, state)


def _run_meanwhile(state: State) -> None:
    with contextlib.suppress(AttentionVizError):
        _ = payload_of(run_request(state.request, longest=SETTINGS.longest_text))
    visit.memory(_Meanwhile).tried = True


def show_picture_of(shown: bytes | Run, stream: str, state: State, pair: tuple[int, int] | None = None) -> None:
    """Draw the explorer of a run or recording's bytes, with the pair described."""
    shown_pair = pair or (state.query, state.key)
    part = shown.part(stream) if isinstance(shown, Run) else shown
    show_explorer(part, stream, state.layer, reading.head(state), take_choice, pair=shown_pair)
