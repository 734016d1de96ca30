"""Folds that an address opens, and only a visitor closes."""

from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui import visit


@dataclass
class _Opened:
    """The folds that were to be open at some run of this visit."""

    keys: set[str] = field(default_factory=set[str])


def opening(key: str, label: str, asked: bool) -> DeltaGenerator:
    """Return an expander, open from the first run on that asks for it.

    It has no key of its own: with one, Streamlit ignores that another address opens it.
    """
    opened = visit.memory(_Opened).keys
    if asked:
        opened.add(key)
    return st.container(key=key).expander(label, expanded=key in opened)
