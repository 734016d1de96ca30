"""A page's style sheets and slots."""

import functools
from dataclasses import fields
from importlib import resources

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.explorer import script
from attention_viz.ui import widgets
from attention_viz.ui.front.waiting import wait_for_room
from attention_viz.views.style.theme import MONOSPACE, ThemeName, palette

_follower = widgets.component("theme", js=script("page/themes.js"))


def theme_name() -> "ThemeName":
    """Return the reader's theme."""
    return "dark" if st.context.theme.type == "dark" else "light"


def follow_theme() -> None:
    """Redraw the page if its theme changes while open."""
    _follower(key="theme", on_changed_change=lambda: None)


def arranged(page: str) -> DeltaGenerator:
    """Return a page's container; visitors without room stop here."""
    wait_for_room()
    st.html(f"<style>{style_sheet(page, theme_name())}</style>")
    return st.container(key="page", height=1, border=False)


@functools.cache
def style_sheet(page: str, theme: ThemeName) -> str:
    """Return a page's CSS; `-dark` files hold dark rules."""
    ui, kinds = resources.files("attention_viz.ui"), ("", "-dark") if theme == "dark" else ("",)
    places = {"layout": ui.joinpath("parts"), "page": ui.joinpath("pages", page)}
    files = [folder.joinpath(f"{name}{kind}.css") for name, folder in places.items() for kind in kinds]
    return colour_rules(theme) + "\n".join(file.read_text("utf-8") for file in files if file.is_file())


def colour_rules(theme: ThemeName) -> str:
    """Return the palette as CSS variables."""
    colours = palette(theme)
    values = {field.name.replace("_", "-"): getattr(colours, field.name) for field in fields(colours)}
    declared = [f"--av-{name}: {value};" for name, value in (*values.items(), ("monospace", MONOSPACE))]
    return f":root {{ {' '.join(declared)} }}\n"
