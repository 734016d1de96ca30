"""Where each part of the Masks page stands, held from the first moment on."""

from dataclasses import dataclass

from streamlit.delta_generator import DeltaGenerator

__all__ = ["HEIGHT", "Places"]

# Of the matrix with what stands beside it, in pixels.
HEIGHT = 660


@dataclass(frozen=True)
class Places:
    """A place for each part of the page.

    Attributes:
        bar: the badge, and what can be taken away.
        notes: what was cut, and what can't be masked.
        pictures: holds the place while it runs, and tells of problems, an `st.empty`.
        board: the matrix, and beside it what the mask did; what else follows stands below.
    """

    bar: DeltaGenerator
    notes: DeltaGenerator
    pictures: DeltaGenerator
    board: DeltaGenerator
