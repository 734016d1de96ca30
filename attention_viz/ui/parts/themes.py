"""Light or dark: figures follow the reader's page."""

from typing import TYPE_CHECKING

import streamlit as st

from attention_viz.explorer import script
from attention_viz.ui import widgets

if TYPE_CHECKING:
    from attention_viz.views.style.theme import ThemeName

__all__ = ["follow_theme", "theme_name"]

_follower = widgets.component("theme", js=script("page/themes.js"))


def theme_name() -> "ThemeName":
    """Which theme the reader has."""
    return "dark" if st.context.theme.type == "dark" else "light"


def follow_theme() -> None:
    """Redraw the page if its theme changes while open."""
    _follower(key="theme", on_changed_change=lambda: None)
