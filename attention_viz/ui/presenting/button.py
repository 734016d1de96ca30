"""The button "Present", and the URL's slide, which the browser writes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from attention_viz.ui import visit
from attention_viz.ui.address.codec import Older, modernised, parameter, read, write
from attention_viz.ui.address.kinds import AnyText

_FIRST = "1.1"
_SLIDE = re.compile(r"[1-9]\d{0,2}\.[12]")


@dataclass
class _PendingSlides:
    count: int = 0


def show_button() -> None:
    """Draw the button for presenters."""
    st.button(
        "Present",
        key="present",
        on_click=_ask,
        help="Show this page as slides: arrow keys turn them, Esc leaves.",
    )


def asked() -> int:
    """Return the number of requests for missing slides."""
    return visit.memory(_PendingSlides).count


def wanted() -> bool:
    """Return whether slides were requested, by button or URL."""
    return asked() > 0 or "slide" in st.query_params


def _ask() -> None:
    visit.memory(_PendingSlides).count += 1


def _slide(_name: str, text: str, _instead: object) -> tuple[str, list[str]]:
    """Return the slide and step; older links only switched slides on."""
    return _FIRST if text == "on" else text, []


@dataclass(frozen=True)
class PresentChoice:
    """The shown slide."""

    slide: str = parameter("", AnyText(longest=5, reader=_slide), "the shown slide", brief=True, older=Older("present"))


def presented(address: Mapping[str, str]) -> dict[str, str]:
    """Return the URL's slide parameters, if any."""
    asked, _ = read(PresentChoice(), modernised([PresentChoice], address))
    return write(asked) if _SLIDE.fullmatch(asked.slide) else {}
