"""Where each part of the Why page stands, held from the first moment on."""

from dataclasses import dataclass

from streamlit.delta_generator import DeltaGenerator

__all__ = ["HEIGHT", "Places"]

# Of the picture on a wide screen, so that nothing below jumps when it arrives.
HEIGHT = 690


@dataclass(frozen=True)
class Places:
    """A place for each part of the page.

    Attributes:
        bar: the badge and what can be taken away.
        asked: the pickers of what is asked.
        ranked: the picker of what heads are ordered by, beside them.
        running: what tells that heads are silenced, beside that.
        other: the box for another text, below them.
        told: what tells how far heads of that text are put, below it.
        notes: what was cut and what can't be had.
        picture: kept while the number is worked out, an `st.empty`.
        board: the number and what wrote it.
        beneath: what opens below that.
    """

    bar: DeltaGenerator
    asked: DeltaGenerator
    ranked: DeltaGenerator
    running: DeltaGenerator
    other: DeltaGenerator
    told: DeltaGenerator
    notes: DeltaGenerator
    picture: DeltaGenerator
    board: DeltaGenerator
    beneath: DeltaGenerator
