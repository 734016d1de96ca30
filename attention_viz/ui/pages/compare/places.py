"""Where each part of the Compare page stands, held from the first moment on."""

from collections.abc import Callable
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
        controls: where a change is chosen, if a change is compared.
        changes: what is changed, in words.
        bar: the badges, and what can be taken away.
        notes: what was cut, and what is left out.
        claim: what differs most, in a sentence.
        curve: a metric over the training; None where no training is compared.
        first: the first side's picture.
        second: the second side's.
        difference: what the second has more, and what less.
    """

    controls: DeltaGenerator
    changes: DeltaGenerator
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


def hold_places(controls: DeltaGenerator, bar: DeltaGenerator, moments: Callable[[], None] | None = None) -> Places:
    """Hold them all, top to bottom.

    Args:
        controls: where a change is chosen, behind the page's button in the row.
        bar: at the end of the row.
        moments: draws the pickers above the curve, where a training is compared.
    """
    changes, notes = st.container(), st.container()
    claim = st.container(key="compare-claim")
    curve = None
    with st.container(key="compare-views"):
        columns = st.columns(3 if moments is None else 4)
        if moments is not None:
            with columns[0]:
                moments()
                curve = st.empty()
        first, second, difference = (column.empty() for column in columns[-3:])
    return Places(controls, changes, bar, notes, claim, curve, first, second, difference)
