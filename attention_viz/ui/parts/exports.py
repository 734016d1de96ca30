"""More export formats."""

import contextlib
import functools
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit, urlunsplit

import pandas
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.trace.ahead import unsaid
from attention_viz.trace.export import to_csv
from attention_viz.trace.files.arrow import parquet_bytes
from attention_viz.trace.trace import Trace
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.markdown import as_sentence
from attention_viz.views import all_heads
from attention_viz.views.export.browsers import at_hand
from attention_viz.views.export.save import printed
from attention_viz.views.export.sheet import Sheet

# The largest run that is made into a file here, in memory.
_MOST_BYTES = 500_000_000
# The longest model name in a file name: file systems allow 255 bytes for all of it.
_LONGEST_NAME = 60

_MEDIA = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "vtt": "text/vtt",
    "html": "text/html",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "safetensors": "application/octet-stream",
}
# A machine's names for itself: in another machine's browser, they mean that machine.
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
NO_BROWSER = "need Chrome, Chromium or Edge on the machine that runs this app, which has none."


def show_run_exports(run: Callable[[], Trace], model: str) -> None:
    """Draw the run's file and the link, for menus with own files."""
    st.caption("The whole run with every head; *Open a trace* reads it.")
    refusals = st.empty()
    trace_button(run, model, refusals)
    show_link()


def link(address: str, parameters: Mapping[str, str]) -> str:
    """Return a page's URL for a state."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", urlencode(parameters), ""))


def show_link() -> None:
    """Show the page's URL to copy."""
    st.caption("Link to this screen")
    if opening.opened() is not None:
        st.caption("A link can't carry a trace from a file.")
        return
    parameters = st.query_params.to_dict()
    st.code(link(st.context.url or "", parameters), language=None, wrap_lines=True)
    if "text" not in parameters:
        st.caption("The text is too long for a link. Paste it after opening the link.")
    show_reach()


def show_reach() -> None:
    """Warn if the link opens on this machine only."""
    if urlsplit(st.context.url or "").hostname in _THIS_MACHINE:
        st.caption(
            "This link works on this machine only. To share it, first open the app at this machine's network address."
        )


def trace_button(run: Callable[[], Trace], model: str, refusals: DeltaGenerator) -> None:
    """Draw the button for the whole run's file."""
    file = f"attention_{model}_trace"
    make, key = lambda: trace_bytes(run()), "more-safetensors"
    file_button("Trace (safetensors)", file, "safetensors", make, key, refusals=refusals)


def show_figure_exports(
    name: str,
    figure_maker: Callable[[], go.Figure],
    table_maker: Callable[[], pandas.DataFrame] | None,
    trace: Trace,
    layer: int | None = None,
    head: int | None = None,
    stream: str | None = None,
    *,
    title: str = "",
    other: Trace | None = None,
) -> None:
    """Export a figure as SVG, PNG and PDF, its numbers as CSV and parquet.

    Args:
        figure_maker: light theme; called outside the page's run.
        title: heads the buttons inside an open menu.
    """

    def picture(form: str) -> bytes:
        runs = [trace] if other is None else [trace, other]
        return printed(figure_maker(), (form,), runs, layer=layer, head=head, stream=stream)[form]

    with contextlib.nullcontext() if title else st.popover("Export", key=f"export-{name}"):
        if title:
            st.caption(title)
        run, file = at_hand() is not None, f"{name}_{model_part(trace)}"
        if not run:
            st.caption(f"Pictures {NO_BROWSER}")
        buttons, refusals = st.container(), st.empty()
        with buttons:
            for form in ("svg", "png", "pdf") if run else ():
                make = functools.partial(picture, form)
                file_button(f"Picture ({form.upper()})", file, form, make, f"{name}-{form}", refusals=refusals)
            if table_maker is not None:
                for form, write in (("CSV", csv_bytes), ("parquet", parquet_bytes)):
                    make, key = functools.partial(_table, table_maker, write), f"{name}-{form.lower()}"
                    file_button(f"Table ({form})", file, form.lower(), make, key, refusals=refusals)


def _table(table_maker: Callable[[], pandas.DataFrame], write: Callable[[pandas.DataFrame], bytes]) -> bytes:
    return write(table_maker())


def csv_bytes(table: pandas.DataFrame) -> bytes:
    """Write a table that no spreadsheet executes, with a UTF-8 mark."""
    return b"\xef\xbb\xbf" + to_csv(_flat(table)).encode()


def trace_bytes(trace: Trace) -> bytes:
    """Save the run for `Trace.load`."""
    if trace.nbytes > _MOST_BYTES:
        raise TraceError(
            f"this run has {trace.nbytes / 1e6:,.0f} MB, but a download may have at most {_MOST_BYTES / 1e6:,.0f}; "
            "record and save it in Python with attention_viz.load"
        )
    try:
        with unsaid(), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace"
            trace.save(path)
            return path.read_bytes()
    except OSError as error:
        raise TraceError(f"the server can't write the trace file: {error.strerror}") from None


def all_heads_bytes(trace: Trace, stream: str) -> bytes:
    """Return a page with every head's pattern."""
    return printed(all_heads(trace, stream), ("pdf",), trace, stream=stream, sheet=Sheet.asked("170mm"))["pdf"]


def model_part(trace: Trace) -> str:
    """Return the model's name for a file name."""
    return re.sub(r"[^\w.-]+", "-", trace.provenance.model)[:_LONGEST_NAME].strip("-.") or "model"


def _flat(table: pandas.DataFrame) -> pandas.DataFrame:
    return table if list(table.index.names) == [None] else table.reset_index()


def file_button(
    label: str,
    name: str,
    ending: str,
    make: Callable[[], bytes],
    key: str,
    *,
    refusals: DeltaGenerator | None = None,
    holds: str | None = None,
    refused: str = "",
) -> None:
    """Draw a button for a file that is made when clicked.

    Args:
        name: without the ending.
        refusals: the slot for an error.
        refused: why it can't be made; "" if it can.
    """
    st.download_button(
        label,
        data=make if refusals is None else _telling(make, refusals),
        file_name=f"{name}.{ending}",
        mime=_MEDIA[ending],
        help=refused or holds,
        disabled=bool(refused),
        on_click="ignore",
        key=f"download-{key}",
    )


def _telling(make: Callable[[], bytes], place: DeltaGenerator) -> Callable[[], bytes]:
    """Show errors from a thread without a page, using the run's context."""
    context = get_script_run_ctx()

    def made() -> bytes:
        try:
            return make()
        except AttentionVizError as error:
            words = as_sentence(str(error))
            teller = threading.Thread(target=lambda: place.warning(words), daemon=True)
            add_script_run_ctx(teller, context)
            teller.start()
            teller.join()
            raise

    return made
