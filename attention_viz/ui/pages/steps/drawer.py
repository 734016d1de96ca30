"""The drawer over the pipeline: a step's matrix, with ways to the next step and back to the pipeline."""

from collections.abc import Callable, Mapping

import streamlit as st

from attention_viz.explorer import drawer_source
from attention_viz.steps.steps import Step
from attention_viz.ui import visit, widgets
from attention_viz.ui.pages.steps.page import PIPELINE, STEP_CHOICES

_drawer = widgets.component("drawer", *drawer_source())


def show_drawer(steps: Mapping[str, Step], show: Callable[[], None]) -> None:
    """Draw the open step, or all of them, over the pipeline."""
    choice = visit.chosen(STEP_CHOICES)
    whole = choice.all == "yes"
    label = "All steps" if whole else steps[choice.step].label
    with st.container(key="steps-drawer-all" if whole else "steps-drawer"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="steps-drawer-head"):
            st.markdown(f"##### {label}", width="stretch")
            if not whole:
                _show_walk([PIPELINE, *steps])
            st.button("Close", key="steps-close", icon=":material/close:", on_click=_close)
        _drawer(key="steps-drawer-held", data={"step": "all" if whole else choice.step})
        show()


def _show_walk(names: list[str]) -> None:
    place = names.index(visit.chosen(STEP_CHOICES).step)
    for label, other in (("Back", place - 1), ("Next", place + 1)):
        inside = 0 <= other < len(names)
        to = (names[other] if inside else names[place],)
        st.button(label, key=f"steps-{label.lower()}", disabled=not inside, on_click=_go_to, args=to)


def _go_to(step: str) -> None:
    visit.pick(STEP_CHOICES, step=step)


def _close() -> None:
    visit.pick(STEP_CHOICES, step=PIPELINE, all="no")
