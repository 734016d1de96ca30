"""Where each part of the Compare page stands, held from the first moment on."""

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

__all__ = ["HEIGHT", "Places", "hold_places"]

# Of each of the pictures, in pixels.
HEIGHT = 430


@dataclass(frozen=True)
class Places:
    """A place for each part of the page.

    Attributes:
        controls: what is changed, where a change is compared.
        bar: the badges, and what can be taken away.
        notes: what was cut, and what is left out.
        claim: what differs most, in a sentence.
        curve: a metric over the training; None where no training is compared.
        first: the first side's picture.
        second: the second side's.
        difference: what the second has more, and what less.
    """

    controls: DeltaGenerator
    bar: DeltaGenerator
    notes: DeltaGenerator
    claim: DeltaGenerator
    curve: DeltaGenerator | None
    first: DeltaGenerator
    second: DeltaGenerator
    difference: DeltaGenerator

    @property
    def pictures(self) -> tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]:
        """The places of both sides and their difference."""
        return self.first, self.second, self.difference


def hold_places(bar: DeltaGenerator, *, curve: bool) -> Places:
    """Hold them all, top to bottom; `bar` is at the end of the row, and `curve` says whether a training is compared."""
    controls = st.container()
    notes = st.container()
    claim = st.container(key="compare-claim")
    with st.container(key="compare-views"):
        *before, first, second, difference = (column.empty() for column in st.columns(4 if curve else 3))
    return Places(controls, bar, notes, claim, before[0] if before else None, first, second, difference)
