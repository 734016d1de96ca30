"""A trace that somebody brings as a file: checked before it is shown in place of a model's run."""

import tempfile
from pathlib import Path

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.ui.markdown import plain
from attention_viz.ui.serving import Drawn, pack_trace

__all__ = ["close", "offer", "opened", "tell"]

_LONGEST_SHOWN = 120


def opened() -> Drawn | None:
    """The trace that is open, if one is."""
    return st.session_state.get("opened")


def offer() -> None:
    """Ask for a file."""
    uploaded = st.file_uploader(
        "A file saved with trace.save, on this machine or another",
        type=["safetensors"],
        # A new key empties the box once its file is open.
        key=f"upload-{st.session_state.get('uploads', 0)}",
    )
    if uploaded is not None:
        _open(uploaded.getvalue())


def tell(drawn: Drawn) -> None:
    """Say that the picture is of a file, and how to go back."""
    origin = drawn.trace.provenance
    text = "given as ids" if origin.text is None else " ".join(origin.text.split())
    short = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    with st.container(horizontal=True, vertical_alignment="center", key="opened-note"):
        st.markdown(f"Shown from a file: {plain(origin.model)}, “{plain(short)}”", width="content")
        st.button("Close it", on_click=close)


def close() -> None:
    """Go back to what the sentence box and the pickers say."""
    st.session_state.pop("opened", None)


def _open(content: bytes) -> None:
    from attention_viz.trace import Trace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "the file"
        path.write_bytes(content)
        try:
            st.session_state["opened"] = pack_trace(Trace.load(path))
        except AttentionVizError as error:
            st.error(plain(f"This can't be shown: {error}"))
            return
    st.session_state["uploads"] = st.session_state.get("uploads", 0) + 1
    st.session_state["layer"] = st.session_state["head"] = 0
    st.rerun()
