"""Light or dark: figures follow the reader's page."""

from typing import TYPE_CHECKING

import streamlit as st
from streamlit.components import v2 as components

from attention_viz.explorer import script

if TYPE_CHECKING:
    from attention_viz.views.style.theme import ThemeName

__all__ = ["follow_theme", "theme_name"]

# Registered once, when the module is imported: a component's name stands for its code from then on.
_follower = components.component("attention_viz_theme", js=script("page/themes.js"))


def theme_name() -> "ThemeName":
    """Which theme the reader has."""
    return "dark" if st.context.theme.type == "dark" else "light"


def follow_theme() -> None:
    """Redraw the page if its theme changes while open."""
    _follower(key="theme", on_changed_change=lambda: None)
