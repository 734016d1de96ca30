"""The course's language: the URL's, or else the browser's."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from attention_viz.lesson.translation import LANGUAGES, in_language

Drawn = TypeVar("Drawn")


def course_language(chosen: str | None) -> str:
    """Return the chosen language, or else the browser's if the course has it, or else English."""
    browsers = (st.context.locale or "").partition("-")[0].lower()
    return chosen or (browsers if browsers in LANGUAGES else next(iter(LANGUAGES)))


def spoken(code: str, draw: Callable[[], Drawn]) -> Callable[[], Drawn]:
    """Return a function that draws in a language of the course."""

    def drawn() -> Drawn:
        with in_language(code):
            return draw()

    return drawn
