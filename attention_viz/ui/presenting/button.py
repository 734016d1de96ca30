"""The button "Present": the browser takes its press where the slides are there, else the page hears of it."""

from dataclasses import dataclass

import streamlit as st

from attention_viz.ui import visit

__all__ = ["asked", "show_button", "wanted"]


@dataclass
class _PendingSlides:
    """How many times slides were asked for before they were there."""

    count: int = 0


def show_button() -> None:
    """A button for those in front of a room."""
    st.button(
        "Present", key="present", on_click=_ask, help="Shows this page as slides: arrow keys turn them, Esc leaves."
    )


def asked() -> int:
    """How many times slides were asked for that the browser didn't have yet."""
    return visit.memory(_PendingSlides).count


def wanted() -> bool:
    """Whether slides were asked for in this visit, by the button or by an address that names one."""
    return asked() > 0 or "slide" in st.query_params


def _ask() -> None:
    visit.memory(_PendingSlides).count += 1
