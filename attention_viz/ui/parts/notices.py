"""What an address can't carry or asks for in vain, in plain sentences."""

from collections.abc import Sequence

import streamlit as st

from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.parts.markdown import plain

__all__ = ["show_link_limit", "show_notices"]


def show_notices(notices: Sequence[str]) -> None:
    """Show what was wrong with the address, where anything was."""
    if notices:
        st.warning("\n\n".join(plain(one) for one in notices))


def show_link_limit(text: str, pronoun: str = "it") -> None:
    """Say of a text that is too long for a link that a link leaves it out."""
    if not fits_link(text):
        st.caption(f"Too long for a link: a link opens without {pronoun}.")
