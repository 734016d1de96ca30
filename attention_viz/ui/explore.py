"""The Explore page: a sentence, a model, and every head of it at once."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.models import CATALOGUE
from attention_viz.ui.downloads import show_downloads
from attention_viz.ui.host import chosen, show_explorer
from attention_viz.ui.serving import Drawn, draw, is_loaded, pack_trace, verify
from attention_viz.ui.settings import SETTINGS
from attention_viz.ui.state import EXAMPLES, Positions, State, read_address, write_address

if TYPE_CHECKING:
    from attention_viz.tokens import Fit
    from attention_viz.trace import Trace

__all__ = ["show_page"]

# The explorer's height on a wide screen, so that nothing below jumps when it arrives.
_HEIGHT = 600


def show_page() -> None:
    """Everything on the page, top to bottom; what takes long comes last and has its place kept."""
    _begin()
    _header()
    opened: Drawn | None = st.session_state.get("opened")
    state = _choose(opened)
    st.query_params.from_dict(write_address(state))
    for notice in st.session_state["notices"]:
        st.warning(notice)
    bar, notes = st.container(key="bar", horizontal=True, vertical_alignment="center"), st.container()
    place = st.empty()
    drawn = opened or _draw(state, place)
    if drawn is None:
        return
    _tell(drawn.fit, state, notes)
    stream = drawn.trace.streams[0]
    with place.container():
        show_explorer(drawn.payload, stream, state.layer, state.head, _take_choice)
    _bar(bar, drawn, stream, state)
    _matrix(drawn.trace, stream, state)


def _begin() -> None:
    """At a visitor's first run, take the choices from the address; from then on the widgets hold them."""
    if "notices" in st.session_state:
        return
    state, notices = read_address(st.query_params.to_dict())
    st.session_state["notices"] = notices
    for name in ("model", "text", "layer", "head", "d_model", "heads", "seed", "positions"):
        st.session_state[name] = getattr(state, name)


def _header() -> None:
    with st.container(key="header", horizontal=True, vertical_alignment="center"):
        st.markdown("#### attention_viz", width="content")
        st.caption("See what attention in a transformer really computes.", width="stretch")
        with st.popover("Examples"):
            for example in EXAMPLES:
                st.button(example, on_click=_take_example, args=(example,), type="tertiary")
        with st.popover("Open a trace"):
            uploaded = st.file_uploader(
                "A file saved with trace.save, on this machine or another",
                type=["safetensors"],
                key=f"upload-{st.session_state.get('uploads', 0)}",
            )
            if uploaded is not None:
                _open(uploaded.getvalue())


def _open(content: bytes) -> None:
    """Check a file that somebody brought and show it in place of a model's run."""
    from attention_viz.trace import Trace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "the file"
        path.write_bytes(content)
        try:
            st.session_state["opened"] = pack_trace(Trace.load(path))
        except AttentionVizError as error:
            st.error(f"This file can't be shown: {error}")
            return
    st.session_state["uploads"] = st.session_state.get("uploads", 0) + 1
    st.session_state["layer"] = st.session_state["head"] = 0
    st.rerun()


def _close() -> None:
    st.session_state.pop("opened", None)


def _take_example(text: str) -> None:
    st.session_state["text"] = text
    _close()


def _take_choice() -> None:
    """A head chosen in the explorer becomes the page's own choice."""
    choice = chosen()
    if choice is not None:
        st.session_state["layer"], st.session_state["head"] = int(choice["layer"]), int(choice["head"])


def _choose(opened: Drawn | None) -> State:
    """The sentence and the pickers on one line."""
    sentence, model, layer, head = st.columns([6, 2.4, 1, 1], vertical_alignment="top")
    held = _held()
    if opened is None:
        sentence.text_area("Sentence", key="text", height=68, max_chars=SETTINGS.longest_input, help=_HELP)
    else:
        _opened(sentence, opened.trace)
    model.selectbox("Model", list(CATALOGUE), key="model", on_change=_close, help=CATALOGUE[held.model].description)
    counts = _counts(held, opened)
    for column, name, count in ((layer, "layer", counts[0]), (head, "head", counts[1])):
        # Another model, or another trace, may have fewer.
        st.session_state[name] = min(st.session_state[name], count - 1)
        column.selectbox(name.capitalize(), range(count), key=name)
    if held.own and opened is None:
        _own_settings()
    return _held()


_HELP = "Press Ctrl + Enter, or click elsewhere, to run it."


def _opened(place: DeltaGenerator, trace: "Trace") -> None:
    origin = trace.provenance
    with place.container(border=True, height=96):
        st.text(f"Opened from a file: {origin.model} · {origin.text or 'given as ids'}"[:300])
        st.button("Close it and go back", on_click=_close, type="tertiary")


def _own_settings() -> None:
    """What can be changed about our own module."""
    width, heads, seed, positions = st.columns(4)
    width.number_input("Width (d_model)", 1, 512, key="d_model", help="How many numbers stand for a word.")
    heads.number_input("Heads", 1, 16, key="heads", help="They share the width evenly, so it has to be a multiple.")
    seed.number_input("Seed", 0, 9999, key="seed", help="Another seed, other random weights.")
    positions.selectbox("Positions", get_args(Positions), key="positions", help="What tells the words' places.")


def _held() -> State:
    """What the widgets hold now."""
    names = ("model", "text", "layer", "head", "d_model", "heads", "seed", "positions")
    return replace(State(), **{name: st.session_state[name] for name in names if name in st.session_state})


def _counts(state: State, opened: Drawn | None) -> tuple[int, int]:
    if opened is None:
        return state.layer_count, state.head_count
    stream = opened.trace.streams[0]
    layers = range(opened.trace.layer_count(stream))
    return len(layers), min(opened.trace.head_count(layer, stream) for layer in layers)


def _draw(state: State, place: DeltaGenerator) -> Drawn | None:
    """Run the sentence, with its place on the page filled all the while; a problem is told in that place."""
    with place.container():
        if not is_loaded(state):
            size = CATALOGUE[state.model].size / 1e6
            st.caption(
                f"Loading {state.model} ({size:.0f} MB) into memory, once for everybody. This takes some seconds …"
            )
        st.skeleton(height=_HEIGHT)
    try:
        return draw(state)
    except AttentionVizError as error:
        place.error(f"{error}")
        return None


def _tell(fit: "Fit | None", state: State, place: DeltaGenerator) -> None:
    """Say what was cut from the text and what a link can't carry; nothing typed is lost."""
    if fit is not None and fit.cut:
        start = " ".join(fit.cut.split())[:80]
        place.warning(
            f"This text has {fit.count:,} tokens, and {state.model} reads {fit.limit:,} at once here. What you typed stays in "
            f"the box; the picture ends before: “{_plain(start)} …”"
        )
    if len(state.text) > SETTINGS.longest_link:
        place.caption("This text is too long for a link: the address leaves it out.")


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{character}" if character in r"\`*_{}[]()#+-.!|~:$<>&" else character for character in text)


def _bar(bar: DeltaGenerator, drawn: Drawn, stream: str, state: State) -> None:
    """The badge and the downloads, on one line above the picture."""
    with bar:
        badge = st.empty()
        badge.badge("Checking against the model without our attention …", color="gray")
        show_downloads(drawn.trace, stream, state.layer, state.head)
    if drawn.fit is None:
        badge.badge("Not verified here: the trace was made elsewhere", color="orange", help=_words(drawn.trace))
        return
    verify(drawn)
    fidelity = drawn.trace.fidelity
    if fidelity.ok:
        badge.badge(
            f"Verified: output within {_power(fidelity.output_error)}, weights within {_power(fidelity.weight_error)}",
            icon=":material/verified:",
            color="green",
            help=_words(drawn.trace),
        )
    else:
        badge.badge(
            f"Not verified: output off by {_power(fidelity.output_error)}, weights by {_power(fidelity.weight_error)}",
            color="red",
            help=_words(drawn.trace),
        )


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(error: float) -> str:
    """A small number in ordinary type: 6.1e-07 as 6×10⁻⁷."""
    if error == 0:
        return "0"
    digit, exponent = f"{error:.0e}".split("e")
    return f"{digit}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def _words(trace: "Trace") -> str:
    fidelity = trace.fidelity
    return (
        f"The same text ran twice: with our attention, which you see, and with {fidelity.reference}. Largest difference in "
        f"the output {_power(fidelity.output_error)}, in any weight {_power(fidelity.weight_error)}, each relative to the largest "
        f"number there; up to {_power(fidelity.bound)} counts as the same."
    )


def _matrix(trace: "Trace", stream: str, state: State) -> None:
    """The chosen head once more as a Plotly figure, to zoom and to read every number."""
    from attention_viz.views import heatmap

    theme: Any = "dark" if st.context.theme.type == "dark" else "light"
    figure = heatmap(trace, state.layer, state.head, stream, theme=theme)
    st.plotly_chart(figure, theme=None, key="matrix", config={"displaylogo": False})
