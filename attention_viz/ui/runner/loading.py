"""A page's usual run and reading."""

from dataclasses import dataclass
from typing import TypeVar

from attention_viz.serving.runs import Run, has_run
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.parts.drawing import draw_in_place, hold
from attention_viz.ui.parts.readings import read_in_place
from attention_viz.ui.parts.selection import ran
from attention_viz.ui.runner.page import Slots
from attention_viz.ui.selection import Selection, resolve

_Run = TypeVar("_Run")


@dataclass(frozen=True, eq=False)
class ReadStudy:
    """A run with all its streams, and its reading; None if that is impossible."""

    run: Run
    shown: Run | None


def load_text(state: State, slots: Slots, longest: int = SETTINGS.longest_study, then: str = "") -> Run | None:
    """Run the sentence with the slot filled; None after a problem. It stays filled if a new run has work after it."""
    picture = slots.picture
    is_new = bool(then) and not has_run(state.request, longest)
    run = draw_in_place(
        state, picture.place, slots.height, whole=True, keep=slots.apart, stays=picture.stays, longest=longest
    )
    if is_new and run is not None and run.fit is not None:
        hold(state, picture.place, slots.height, then)
    return run


def settle_text(selection: Selection, run: Run) -> Selection:
    """Select the run's best finding unless a head was chosen."""
    return resolve(selection, ran(run))


def study_read(run: Run, selection: Selection, slots: Slots) -> ReadStudy:
    """Read the run's weights as chosen."""
    return ReadStudy(run, read_in_place(run, selection.shared, slots.picture.place, slots.height))


def study_as_it_is(run: _Run, _selection: Selection, _slots: Slots) -> _Run:
    """Return the run: nothing more is computed."""
    return run
