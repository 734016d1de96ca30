"""How most pages load what they show: the sentence's run, and its weights as they are read; and what follows from it."""

from dataclasses import dataclass

from attention_viz.serving.runs import Drawn
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.parts.drawing import draw_in_place
from attention_viz.ui.parts.readings import read_in_place
from attention_viz.ui.parts.selection import ran
from attention_viz.ui.runner.page import Slots
from attention_viz.ui.selection import Selection, resolve

__all__ = ["ReadRun", "load_read", "settle_read"]


@dataclass(frozen=True, eq=False)
class ReadRun:
    """A run, and what is shown of it.

    Attributes:
        drawn: the run, with all its streams.
        shown: the same as it is read; None if it can't be read so, which the page says.
    """

    drawn: Drawn
    shown: Drawn | None


def load_read(state: State, slots: Slots, longest: int = SETTINGS.longest_study) -> ReadRun | None:
    """Run the sentence and read its weights, in the picture's slot; None after a problem.

    Args:
        state: what is chosen.
        slots: the page's slots.
        longest: how many tokens are read at most.
    """
    picture = slots.picture
    drawn = draw_in_place(state, picture.place, slots.height, whole=True, stays=picture.stays, longest=longest)
    if drawn is None:
        return None
    return ReadRun(drawn, read_in_place(drawn, state, picture.place, slots.height))


def settle_read(selection: Selection, run: ReadRun) -> Selection:
    """Return the selection with the run's best finding, as far as nobody chose another head."""
    return resolve(selection, ran(run.drawn))
