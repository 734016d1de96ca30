"""A trace that somebody brings as a file: checked before it is shown in place of a model's run."""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.serving.runs import Drawn
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.views.style.wording import one_line

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from attention_viz.trace.trace import Trace

__all__ = ["close", "count", "let_go", "offer", "offer_closing", "opened", "show_origin"]

_LONGEST_MODEL, _LONGEST_TEXT = 40, 100

# What says which head is shown; put back when a file is closed.
_PLACE = ("layer", "head", "stream")
# The boxes, by their names in the state, and what a file's provenance has for each; put back, too, where nobody has
# typed into them meanwhile.
_TEXTS = {"text": "text", "second": "second_text", "target": "target"}


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
        _open(uploaded)
    if "refused" in st.session_state:
        st.error(plain(f"This can't be shown: {st.session_state['refused']}"))


def count() -> int:
    """How many files were opened so far."""
    return st.session_state.get("files_opened", 0)


def show_origin(drawn: Drawn) -> None:
    """Say that the picture is of a file, and how to go back."""
    origin = drawn.trace.provenance
    seen = origin.picture or origin.sound
    text = "ids without a text" if origin.text is None else f"“{one_line(origin.text, _LONGEST_TEXT)}”"
    text = text if seen is None else one_line(seen, _LONGEST_TEXT)
    model = one_line(origin.model, _LONGEST_MODEL)
    changed = f". It ran with a change: {'; '.join(origin.edits)}" if origin.edits else ""
    tell(
        f"Shown from a file, which a link can't carry: {model}, {text}{changed}",
        short="From a file, changed" if changed else "From a file",
        below=offer_closing,
    )


def offer_closing(key: str) -> None:
    """The button that closes the file."""
    st.button("Close it", on_click=close, key=key)


def close() -> None:
    """Go back to what the sentence box and the pickers say."""
    drawn: Drawn | None = st.session_state.pop("opened", None)
    if drawn is None:
        return
    before: dict[str, Any] = st.session_state.pop("place_before", {})
    texts = _texts_of(drawn.trace)
    st.session_state.update(
        {name: value for name, value in before.items() if st.session_state.get(name) == texts.get(name, value)}
        | {name: before[name] for name in _PLACE if name in before}
    )


def _open(uploaded: "UploadedFile") -> None:
    from attention_viz.trace.trace import Trace

    # The box is emptied whatever comes of it, so that a refused file isn't read again at every click.
    st.session_state["uploads"] = st.session_state.get("uploads", 0) + 1
    st.session_state.pop("refused", None)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "the file"
            with path.open("wb") as file:
                shutil.copyfileobj(uploaded, file)
            let_go(uploaded)
            drawn = _checked(Trace.load(path))
    except AttentionVizError as error:
        st.session_state["refused"] = str(error)
    except OSError as error:
        st.session_state["refused"] = f"this machine has no room for the file while it is read ({error.strerror})"
    else:
        _show(drawn)
    let_go(uploaded)
    st.rerun()


def let_go(uploaded: "UploadedFile") -> None:
    """Free what was uploaded: Streamlit keeps every file until its visitor is gone."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        context.uploaded_file_mgr.remove_file(session_id=context.session_id, file_id=uploaded.file_id)
    uploaded.close()


def _checked(trace: "Trace") -> Drawn:
    """A trace from a file, ready for the browser.

    Raises:
        TraceError: it has more weights than can be drawn, numbers that can't, or only some of its layers.
    """
    for stream, kept in trace.kept.items():
        if not kept.whole:
            raise TraceError(
                f"this trace keeps only some layers of the {stream} ({kept}), and the pages show all of them; open it "
                "in Python with attention_viz.Trace.load"
            )
    weights = sum(_size(layer.attention.shape) for layers in trace.layers.values() for layer in layers)
    if weights > SETTINGS.most_weights:
        raise TraceError(
            f"this trace has {weights:,} weights, and at most {SETTINGS.most_weights:,} can be drawn here; "
            "open it in Python with attention_viz.Trace.load"
        )
    drawn = Drawn(trace)
    _ = drawn.payload
    return drawn


def _size(shape: tuple[int, ...]) -> int:
    heads, queries, keys = shape
    return heads * queries * keys


def _show(drawn: Drawn) -> None:
    if opened() is None:
        replaced = (*_PLACE, *_TEXTS)
        st.session_state["place_before"] = {
            name: st.session_state[name] for name in replaced if name in st.session_state
        }
    st.session_state.update({"opened": drawn, "layer": 0, "head": 0, "stream": None, "files_opened": count() + 1})
    st.session_state.update(_texts_of(drawn.trace))


def _texts_of(trace: "Trace") -> dict[str, str]:
    """What the boxes say while a trace is open: the texts that ran."""
    return {box: getattr(trace.provenance, name) or "" for box, name in _TEXTS.items()}
