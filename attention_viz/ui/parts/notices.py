"""Parts of an address that can't be had, told in plain sentences."""

from collections.abc import Sequence

import streamlit as st

from attention_viz.ui.parts.markdown import plain

__all__ = ["show_notices"]


def show_notices(notices: Sequence[str]) -> None:
    """Show what was wrong with the address, where anything was."""
    if notices:
        st.warning("\n\n".join(plain(one) for one in notices))
