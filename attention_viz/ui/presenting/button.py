"""The button "Present", handled by the browser once it has slides."""

from dataclasses import dataclass

import streamlit as st

from attention_viz.ui import visit

__all__ = ["asked", "show_button", "wanted"]


@dataclass
class _PendingSlides:
    count: int = 0


def show_button() -> None:
    """Draw the button for presenters."""
    st.button(
        "Present", key="present", on_click=_ask, help="Shows this page as slides: arrow keys turn them, Esc leaves."
    )


def asked() -> int:
    """Return the number of requests for missing slides."""
    return visit.memory(_PendingSlides).count


def wanted() -> bool:
    """Return whether slides were requested, by button or URL."""
    return asked() > 0 or "slide" in st.query_params


def _ask() -> None:
    visit.memory(_PendingSlides).count += 1
