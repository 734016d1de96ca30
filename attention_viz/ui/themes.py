"""Light or dark: figures follow the reader's page."""

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from attention_viz.views.theme import ThemeName

__all__ = ["theme_name"]


def theme_name() -> "ThemeName":
    """Which theme the reader has."""
    return "dark" if st.context.theme.type == "dark" else "light"
