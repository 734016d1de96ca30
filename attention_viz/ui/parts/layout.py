"""Where things stand on a page, beyond what Streamlit arranges: the style sheets, and room kept while parts arrive."""

import functools
from dataclasses import fields
from importlib import resources

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui.front.waiting import wait_for_room
from attention_viz.ui.parts.themes import theme_name
from attention_viz.views.style.theme import MONOSPACE, ThemeName, palette

__all__ = ["arranged", "style_sheet"]


def arranged(page: str) -> DeltaGenerator:
    """The place where a page is written, so that each of its parts has its own from the first moment.

    Whoever the server has no room for gets no further than to here.
    """
    wait_for_room()
    st.html(f"<style>{style_sheet(page, theme_name())}</style>")
    return st.container(key="page", height=1, border=False)


@functools.cache
def style_sheet(page: str, theme: ThemeName) -> str:
    """The style sheet of one page: what all pages share, and what is its own, on a light or a dark page.

    Args:
        theme: "light" or "dark"; rules for dark pages stand in files of their own, whose names end with "-dark".
    """
    ui, kinds = resources.files("attention_viz.ui"), ("", "-dark") if theme == "dark" else ("",)
    places = {"layout": ui.joinpath("parts"), "page": ui.joinpath("pages", page)}
    files = [folder.joinpath(f"{name}{kind}.css") for name, folder in places.items() for kind in kinds]
    return _colours(theme) + "\n".join(file.read_text("utf-8") for file in files if file.is_file())


def _colours(theme: ThemeName) -> str:
    """The look's colours and its typeface for numbers, as variables that the style sheets name."""
    colours = palette(theme)
    values = {field.name.replace("_", "-"): getattr(colours, field.name) for field in fields(colours)}
    declared = [f"--av-{name}: {value};" for name, value in (*values.items(), ("monospace", MONOSPACE))]
    return f":root {{ {' '.join(declared)} }}\n"
