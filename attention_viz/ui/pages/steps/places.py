"""Where each part of the Step by step page stands, held from the first moment on."""

from dataclasses import dataclass

from streamlit.delta_generator import DeltaGenerator

__all__ = ["Places"]


@dataclass(frozen=True)
class Places:
    """A place for each part of the page.

    Attributes:
        controls: the list of steps and the cell's pickers, where one step's matrix is open.
        options: the switches, behind "Options".
        notes: what was cut and what can't be had.
        picture: the step, or what is said in its place, an `st.empty`.
        pipeline: the pipeline, a container of which nothing is left where a step stands.
        below: the list of steps, where the pipeline is shown.
        bar: the badge and what can be taken away.
    """

    controls: DeltaGenerator
    options: DeltaGenerator
    notes: DeltaGenerator
    picture: DeltaGenerator
    pipeline: DeltaGenerator
    below: DeltaGenerator
    bar: DeltaGenerator
