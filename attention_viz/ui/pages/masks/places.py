"""Where each part of the Masks page stands, held from the first moment on."""

from dataclasses import dataclass

from streamlit.delta_generator import DeltaGenerator

__all__ = ["HEIGHT", "Places"]

# Of both pictures, in pixels.
HEIGHT = 430


@dataclass(frozen=True)
class Places:
    """A place for each part of the page.

    Attributes:
        line: this page's own pickers, on which there is room for a drawing board.
        bar: the badge, and what can be taken away.
        notes: what was cut, and what can't be masked.
        pictures: the head before and after, an `st.empty`; what follows from the mask stands below.
    """

    line: DeltaGenerator
    bar: DeltaGenerator
    notes: DeltaGenerator
    pictures: DeltaGenerator
