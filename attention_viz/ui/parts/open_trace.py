"""A visitor's trace file."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.serving.runs import Run
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit, widgets
from attention_viz.ui.packing import payload_of
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.selection import FileClosed, FileOpened
from attention_viz.views.style.wording import one_line

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from attention_viz.trace.trace import Trace

_LONGEST_MODEL, _LONGEST_TEXT = 40, 100

# The boxes, by their names in the state, and what a file's provenance has for each.
_TEXTS = {"text": "text", "second": "second_text", "target": "target"}
_FIELD = "upload"


@dataclass
class _Opening:
    """The last file's error, or "", and the number of opened files."""

    refused: str = ""
    count: int = 0


def opened() -> Run | None:
    """Return the open trace, if any."""
    return visit.here().file


def offer() -> None:
    """Draw the upload field."""
    uploaded = st.file_uploader("File from trace.save", type=["safetensors"], key=widgets.fresh(_FIELD))
    if uploaded is not None:
        _open(uploaded)
    if refused := visit.memory(_Opening).refused:
        st.error(plain(f"Can't open this file: {refused}"))


def count() -> int:
    """Return the number of opened files."""
    return visit.memory(_Opening).count


def show_origin(run: Run) -> None:
    """Show that a file is open, and the way back."""
    origin = run.trace.provenance
    seen = next(iter(origin.media.values()), None)
    text = "token ids without text" if origin.text is None else f"“{one_line(origin.text, _LONGEST_TEXT)}”"
    text = text if seen is None else one_line(seen, _LONGEST_TEXT)
    model = one_line(origin.model, _LONGEST_MODEL)
    changed = f". It ran with a change: {'; '.join(origin.edits)}" if origin.edits else ""
    tell(
        f"Shown from a file, which links leave out: {model}, {text}{changed}",
        short="From a file, changed" if changed else "From a file",
        below=offer_closing,
    )


def offer_closing(key: str) -> None:
    """Draw the button that closes the file."""
    st.button("Close it", on_click=close, key=key)


def close() -> None:
    """Return to the sentence box and the pickers."""
    visit.send(FileClosed())


def _open(uploaded: "UploadedFile") -> None:
    from attention_viz.trace.trace import Trace

    # Empty the box in any case, so that a rejected file isn't read again at every click.
    widgets.renew(_FIELD)
    opening = visit.memory(_Opening)
    opening.refused = ""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "the file"
            with path.open("wb") as file:
                shutil.copyfileobj(uploaded, file)
            let_go(uploaded)
            run = _checked(Trace.load(path))
    except AttentionVizError as error:
        opening.refused = str(error)
    except OSError as error:
        opening.refused = f"the server has no room to read the file ({error.strerror})"
    else:
        opening.count += 1
        texts = {box: getattr(run.trace.provenance, name) or "" for box, name in _TEXTS.items()}
        visit.send(FileOpened(opening.count, texts))
        visit.here().file = run
    let_go(uploaded)
    visit.run_again()


def let_go(uploaded: "UploadedFile") -> None:
    """Free the upload, because Streamlit keeps it until its visitor leaves."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        context.uploaded_file_mgr.remove_file(session_id=context.session_id, file_id=uploaded.file_id)
    uploaded.close()


def _checked(trace: "Trace") -> Run:
    for stream, kept in trace.kept.items():
        if not kept.whole:
            raise TraceError(
                f"this trace has only some layers of the {stream} ({kept}), but the pages need all; open it in Python "
                "with attention_viz.Trace.load"
            )
    weights = sum(_size(layer.attention.shape) for layers in trace.layers.values() for layer in layers)
    if weights > SETTINGS.most_weights:
        raise TraceError(
            f"this trace has {weights:,} weights, but this app draws at most {SETTINGS.most_weights:,}; open it in "
            "Python with attention_viz.Trace.load"
        )
    run = Run(trace)
    _ = payload_of(run)
    return run


def _size(shape: tuple[int, ...]) -> int:
    heads, queries, keys = shape
    return heads * queries * keys
